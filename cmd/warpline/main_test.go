package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/simrun"
	"github.com/warpline-ml/warpline/plan"
	"github.com/warpline-ml/warpline/train"
)

// beCommand, set in the environment, makes the test binary the command itself.
const beCommand = "WARPLINE_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(beCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// decode reads JSON lines.
func decode(t *testing.T, text string) (out []map[string]any) {
	t.Helper()
	for l := range strings.Lines(text) {
		var v map[string]any
		if err := json.Unmarshal([]byte(l), &v); err != nil {
			t.Fatalf("%q: %v", l, err)
		}
		out = append(out, v)
	}
	return out
}

func has(t *testing.T, v map[string]any, keys ...string) {
	t.Helper()
	for _, k := range keys {
		if _, ok := v[k]; !ok {
			t.Errorf("%v lacks %q", v, k)
		}
	}
	if len(v) != len(keys) {
		t.Errorf("%v has %d entries, want %v", v, len(v), keys)
	}
}

func TestJSON(t *testing.T) {
	r := newRoom(t)
	r.npz("data.npz", images(bytesArray(30, 1, 6, 6)), marks(labels(30)))
	args := []string{"train", "mlp", "--data", "data.npz", "--batch", "4", "--steps", "5", "--eval-every", "3", "--json"}
	status, stdout, stderr := command(t.Context(), args...)
	if status != exitDone {
		t.Fatalf("status %d\n%s", status, stderr)
	}
	lines := decode(t, stdout)
	if len(lines) != 7 {
		t.Fatalf("%d lines:\n%s", len(lines), stdout)
	}
	for _, i := range []int{0, 1, 2, 4, 5} {
		has(t, lines[i], "step", "loss", "ms")
	}
	has(t, lines[3], "score", "step", "val_loss", "accuracy", "metrics")
	has(t, lines[6], "final", "steps", "loss", "accuracy", "metrics", "val_loss", "seconds", "peak_bytes")
	if lines[5]["step"] != 5.0 || lines[5]["loss"] != lines[6]["loss"] || lines[6]["final"] != true {
		t.Errorf("the end is\n%s", stdout)
	}
	if !strings.Contains(stderr, "held out") || !strings.Contains(stderr, "runs/mlp-1") {
		t.Errorf("text for people:\n%s", stderr)
	}

	_, people, _ := command(t.Context(), "eval", "runs/mlp-1")
	status, stdout, _ = command(t.Context(), "eval", "runs/mlp-1", "--json")
	scored := decode(t, stdout)
	if status != exitDone || len(scored) != 1 {
		t.Fatalf("status %d\n%s", status, stdout)
	}
	if !strings.Contains(people, "the last tenth of ") {
		t.Errorf("eval does not say what it scores:\n%s", people)
	}
	has(t, scored[0], "final", "samples", "set", "loss", "accuracy", "metrics", "seconds", "peak_bytes")
	if scored[0]["loss"] != lines[6]["val_loss"] || scored[0]["accuracy"] != lines[6]["accuracy"] {
		t.Errorf("eval says %v, training said %v", scored[0], lines[6])
	}
}

func TestPeople(t *testing.T) {
	r := newRoom(t)
	r.npz("data.npz", images(bytesArray(60, 1, 12, 12)), marks(labels(60)))
	for range 2 {
		status, stdout, stderr := command(t.Context(), "train", "--data", "data.npz", "--batch", "4", "--steps", "5")
		if status != exitDone || stderr != "" {
			t.Fatalf("status %d\n%s", status, stderr)
		}
		for _, want := range []string{"convolutional network", "step 5 of 5", "samples/s", "ETA", "accuracy", "weights", "activations", "peak in all", "─", "▄", "loss.svg", "warpline eval runs/digits-"} {
			if !strings.Contains(stdout, want) {
				t.Errorf("no %q in\n%s", want, stdout)
			}
		}
	}
	for _, name := range []string{"config.json", "model.safetensors", "log.jsonl", "loss.svg", "checkpoint-5/manifest.json"} {
		if _, err := os.Stat(filepath.Join("runs/digits-2", name)); err != nil {
			t.Error(err)
		}
	}
}

func TestText(t *testing.T) {
	r := newRoom(t)
	r.file("data.txt", []byte(strings.Repeat("abc ", 100)))
	r.good("train", "gpt", "--data", "data.txt", "--batch", "2", "--steps", "3", "--context", "8", "--layers", "1", "--heads", "2", "--width", "8", "--out", "run")
	_, plain, _ := command(t.Context(), "sample", "run", "--prompt", "ab", "--length", "9", "--seed", "3")
	if len(plain) != len("ab")+9+1 || !strings.HasPrefix(plain, "ab") {
		t.Errorf("a sample of 9 after a prompt of 2: %q", plain)
	}
	_, stdout, _ := command(t.Context(), "sample", "run", "--prompt", "ab", "--length", "9", "--seed", "3", "--json")
	lines := decode(t, stdout)
	if len(lines) != 1 || lines[0]["text"] != plain[2:len(plain)-1] || lines[0]["tokens"] != 9.0 {
		t.Errorf("as JSON: %s", stdout)
	}
	if _, _, stderr := command(t.Context(), "sample", "run", "--temperature", "0", "--top-k", "1"); stderr != "" {
		t.Error(stderr)
	}
}

// TestInterrupted stops a run by its context, as the first Ctrl-C does, and goes on.
func TestInterrupted(t *testing.T) {
	r := newRoom(t)
	r.npz("data.npz", images(bytesArray(30, 1, 6, 6)), marks(labels(30)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	status, stdout, stderr := command(ctx, "train", "mlp", "--data", "data.npz", "--batch", "4", "--steps", "5", "--out", "run")
	if status != exitInterrupted || stderr != "" || !strings.Contains(stdout, "interrupted after step 1") || !strings.Contains(stdout, "--resume --out run") {
		t.Errorf("status %d\n%s\n%s", status, stdout, stderr)
	}
	r.good("train", "--resume", "--out", "run")
	r.good("eval", "run")
}

// endless is a run that keeps a checkpoint when it is stopped, and none before: how far it comes until then is chance.
var endless = []string{"train", "--batch", "8", "--steps", "1000000", "--save-every", "0", "--out", "run", "--json"}

// TestSignals sends a process what Ctrl-C and a terminal that closes send: once it stops at a step and keeps a checkpoint,
// twice it stops.
func TestSignals(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be sent Ctrl-C here: os.Process.Signal has no Interrupt on windows")
	}
	cases := [][]syscall.Signal{{syscall.SIGINT}, {syscall.SIGINT, syscall.SIGINT}}
	if !signal.Ignored(syscall.SIGHUP) { // which the process would inherit
		cases = append(cases, []syscall.Signal{syscall.SIGHUP}, []syscall.Signal{syscall.SIGHUP, syscall.SIGHUP})
	}
	for _, signals := range cases {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0], endless...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), beCommand+"=1")
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil { // the first step
			t.Fatal(err)
		}
		go func() { new(bytes.Buffer).ReadFrom(out) }()
		for _, s := range signals {
			cmd.Process.Signal(s)
		}
		cmd.Wait()
		if !strings.Contains(said.String(), "stopping after this step; again to stop now\n") {
			t.Errorf("%v: said %q", signals, said.String())
		}
		if status := cmd.ProcessState.ExitCode(); status != exitInterrupted {
			t.Errorf("%v: status %d", signals, status)
		}
		found, err := filepath.Glob(dir + "/run/checkpoint-*/manifest.json")
		if err != nil || (len(signals) == 1 || signals[1] == syscall.SIGHUP) && len(found) != 1 {
			t.Errorf("%v: checkpoints %v, %v", signals, found, err)
		}
	}
}

// TestReaderLeaves: when who reads the output has gone, as head does, a run keeps what it has done and says so.
func TestReaderLeaves(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGPIPE on windows: a closed pipe is an error like a full disk's, which TestFullOutput has")
	}
	cmd := exec.Command(os.Args[0], endless...)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), beCommand+"=1")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = out.Read(make([]byte, 1)) // the first step
	}
	if err != nil {
		t.Fatal(err)
	}
	out.Close()
	cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); status != exitFailed || !strings.Contains(said.String(), "--resume --out run") {
		t.Errorf("status %d, said %q", status, said.String())
	}
	if found, err := filepath.Glob(cmd.Dir + "/run/checkpoint-*/manifest.json"); err != nil || len(found) != 1 {
		t.Errorf("checkpoints %v, %v", found, err)
	}
}

// TestLevel: every command refuses a level of the processor that is not there, in one line and one of what to do.
func TestLevel(t *testing.T) {
	run := func(level string, args ...string) (status int, stderr string) {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), beCommand+"=1", cpufeat.Env+"="+level)
		var said bytes.Buffer
		cmd.Stderr = &said
		cmd.Run()
		return cmd.ProcessState.ExitCode(), said.String()
	}
	for _, args := range [][]string{{"train", "--steps", "1"}, {"check", "--device", "cpu", "--ops", "add"}, {"sim", "cards"}, {"version"}} {
		for _, level := range []string{"fast", "AVX2"} {
			status, stderr := run(level, args...)
			if status != exitFailed || strings.Count(stderr, "\n") != 2 || !strings.HasPrefix(stderr, "error: WARPLINE_CPU="+level+": there is no level \""+level+"\"; this machine has generic") {
				t.Errorf("%v with %s: status %d\n%s", args, level, status, stderr)
			}
		}
	}
	for _, level := range cpufeat.Levels() {
		if status, stderr := run(level.String(), "check", "--device", "cpu", "--ops", "matmul", "--short"); status != exitDone {
			t.Errorf("%v: status %d\n%s", level, status, stderr)
		}
	}
}

// TestHelpFits: without a terminal no line of help but an example's is wider than 80 columns.
func TestHelpFits(t *testing.T) {
	for _, c := range newRoot().Commands() {
		_, stdout, _ := command(t.Context(), c.Name(), "--help")
		example := false
		for line := range strings.Lines(stdout) {
			example = line != "\n" && (example || line == "Examples:\n")
			if n := render.Width(strings.TrimSuffix(line, "\n")); n > 80 && !example {
				t.Errorf("%s --help has a line of %d columns: %s", c.Name(), n, line)
			}
		}
	}
	if got, want := folded(joined("one two\nthree\n\n  a    b c d e"), 11), "one two\nthree\n\n  a    b c\n     d e"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"train", "--help"}, {"eval", "--help"}, {"predict", "--help"}, {"sample", "--help"}, {"version", "--help"}, {"torch", "--help"}, {}} {
		status, stdout, _ := command(t.Context(), args...)
		if status != exitDone || !strings.Contains(stdout, "Examples:\n  warpline ") {
			t.Errorf("%q: status %d, no example in\n%s", args, status, stdout)
		}
	}
	status, stdout, _ := command(t.Context(), "version", "--json")
	if lines := decode(t, stdout); status != exitDone || len(lines) != 1 {
		t.Errorf("version: %s", stdout)
	}
	_, want, _ := command(t.Context(), "version")
	if status, stdout, _ := command(t.Context(), "--version"); status != exitDone || stdout != want {
		t.Errorf("--version: %q, want %q", stdout, want)
	}
}

// TestTerminal draws the live line, in one row that is wiped at the end.
func TestTerminal(t *testing.T) {
	var b bytes.Buffer
	s := &screen{text: &b, terminal: true, width: 90}
	s.Start(train.Start{Task: "digits", Units: "samples", Steps: 3, Batch: 10, Train: 5, Computed: true})
	for i := range 3 {
		s.shown = time.Time{}
		s.Step(train.Step{Step: i + 1, Loss: 2, MS: 20, Peak: 1 << 20})
	}
	s.shown = time.Now().Add(time.Hour) // however slow the machine, it is too soon
	s.Scoring(256, 2000)
	s.shown, s.scoring.began = time.Time{}, s.scoring.began.Add(-time.Second)
	s.Scoring(512, 2000)
	s.Scoring(2000, 2000)
	drawn := b.String()[strings.Index(b.String(), "\r"):]
	if strings.Contains(drawn, "\n") || strings.Count(drawn, "\r\x1b[K") != 6 || !strings.Contains(drawn, "scoring 512 of 2000 samples  ETA ") || !strings.HasSuffix(drawn, "\x1b[K") {
		t.Errorf("drawn %q", drawn)
	}
	if strings.Contains(drawn, "ETA 0 ns") || !strings.Contains(drawn, "memory 1.00 MiB") {
		t.Errorf("drawn %q", drawn)
	}
	if !strings.Contains(drawn, "loss 2.0000") || !strings.Contains(drawn, "500 samples/s") || !strings.Contains(drawn, "ETA 40.0 ms") {
		t.Errorf("drawn %q", drawn)
	}
}

// TestPlannedPeaks: a dry run whose peaks are not of all steps says so in a line, and no other does.
func TestPlannedPeaks(t *testing.T) {
	for peaksOf, want := range []int{0, 1} {
		var b bytes.Buffer
		s := &screen{text: &b, width: 90}
		s.planned(&train.Dry{Model: "a model", Reports: []*plan.Report{{Card: "l4", PeaksOf: 102 * peaksOf}}})
		if n := strings.Count(b.String(), "l4: memory did not come back to what it was: peaks are of 102 steps"); n != want || strings.Count(b.String(), "come back") != want {
			t.Errorf("%s", b.String())
		}
	}
}

// TestNarrow: the live line fits a terminal that is too narrow for anything else; one that does not tell its width has 80.
func TestNarrow(t *testing.T) {
	var b bytes.Buffer
	s := &screen{text: &b, terminal: true, width: 80}
	if s.fit(0); s.width != 80 || s.liveWidth() != 79 {
		t.Errorf("without a width %d columns, live %d", s.width, s.liveWidth())
	}
	now := 20
	s.columns = func() int { return now }
	s.start = train.Start{Steps: 3, Batch: 10, Computed: true}
	s.Step(train.Step{Step: 1, Loss: 2, MS: 20})
	line := strings.TrimPrefix(b.String(), "\r\x1b[K")
	if n := render.Width(line); n == 0 || n > 19 || s.width != 40 {
		t.Errorf("%d columns: %q, tables %d", n, line, s.width)
	}
	if now = 100; s.liveWidth() != 99 || s.width != 100 {
		t.Errorf("a wider terminal has %d columns, live %d", s.width, s.liveWidth())
	}
}

// TestHung: on a terminal every line fits, and what has columns goes on in the last of them.
func TestHung(t *testing.T) {
	s := &screen{width: 40}
	const text = "a finding that is wider than forty columns\n  source    k.cu:7  y[i] = x[i - 1] + x[i + 1];"
	if got := s.hung(text); got != text || s.tableWidth() != widestTable {
		t.Errorf("%q", got)
	}
	s.terminal = true
	want := "a finding that is wider than forty\n  columns\n  source    k.cu:7  y[i] = x[i - 1] +\n                    x[i + 1];"
	if got := s.hung(text); got != want || s.tableWidth() != 40 {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if text := simrun.CardsText(simrun.Cards(), 80); !strings.Contains(text, "GeForce RTX 3090") || strings.Contains(text, "…") {
		t.Errorf("in 80 columns\n%s", text)
	}
}

// TestKinds: each flag of each command says in people's words what it takes; texts take anything, and a choice is its own words.
func TestKinds(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if of := f.Value.Type(); kind(f) == of && !strings.HasPrefix(of, "string") && !strings.Contains(of, "|") {
				t.Errorf("%s --%s: no words for a value of type %s", cmd.CommandPath(), f.Name, of)
			}
		})
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(newRoot())
}

// TestMistake turns a panic of the library into two lines.
func TestMistake(t *testing.T) {
	var stderr bytes.Buffer
	status := guarded(&stderr, func() int { panic("index out of range") })
	if text := stderr.String(); status != exitFailed || strings.Count(text, "\n") != 2 || !strings.Contains(text, "index out of range") || !strings.Contains(text, "WARPLINE_DEBUG=1") {
		t.Errorf("status %d\n%s", status, text)
	}
}

func TestShrink(t *testing.T) {
	p := train.Picture{Width: 65, Height: 40, Pixels: make([]float32, 65*40)}
	for i := range p.Pixels {
		p.Pixels[i] = 0.5
	}
	small := shrunk([]train.Picture{p})[0]
	if small.Width != 21 || small.Height != 13 || len(small.Pixels) != 21*13 || small.Pixels[100] != 0.5 {
		t.Errorf("%d×%d, %d pixels", small.Width, small.Height, len(small.Pixels))
	}
	dot := train.Picture{Width: 5, Height: 4, Pixels: make([]float32, 20)}
	dot.Pixels[1*5+3] = 1
	cut := trimmed([]train.Picture{dot, dot})
	if len(cut) != 2 || cut[0].Width != 1 || cut[0].Height != 1 || cut[0].Pixels[0] != 1 {
		t.Errorf("a dot is cut to %+v", cut)
	}
}

// full is a disk without room after some bytes.
type full struct{ left int }

func (f *full) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, syscall.ENOSPC
	}
	return len(b), nil
}

// TestFullOutput: a standard output that cannot be written stops a run at once, which keeps what it has done.
func TestFullOutput(t *testing.T) {
	r := newRoom(t)
	r.npz("data.npz", images(bytesArray(30, 1, 6, 6)), marks(labels(30)))
	for name, flags := range map[string][]string{"json": {"--json"}, "text": nil} {
		var stderr bytes.Buffer
		args := append([]string{"train", "mlp", "--data", "data.npz", "--batch", "4", "--steps", "1000000", "--out", name}, flags...)
		status := execute(t.Context(), args, &full{150}, &stderr)
		text := stderr.String()
		if status != exitFailed || !strings.Contains(text, "no space left") || !strings.Contains(text, "--resume --out "+name) {
			t.Errorf("%s: status %d\n%s", name, status, text)
		}
		if found, err := filepath.Glob(name + "/checkpoint-*/manifest.json"); len(found) != 1 || err != nil {
			t.Errorf("%s: checkpoints %v, %v", name, found, err)
		}
		if status, stdout, _ := command(t.Context(), "eval", name); status != exitDone {
			t.Errorf("%s: eval: %d\n%s", name, status, stdout)
		}
	}
	for _, args := range [][]string{{"eval", "json"}, {"eval", "json", "--json"}, {"version", "--json"}, {"version"}, {"check", "--list"}, {"sim", "cards"}} {
		var stderr bytes.Buffer
		if status := execute(t.Context(), args, &full{0}, &stderr); status != exitFailed || strings.Count(stderr.String(), "\n") != 2 || !strings.Contains(stderr.String(), "hint: make room for it") {
			t.Errorf("%q: status %d\n%s", args, status, stderr.String())
		}
	}
}

// TestMemoryOnly: a device without arithmetic gives figures of memory and nothing that looks like a result.
func TestMemoryOnly(t *testing.T) {
	r := newRoom(t)
	r.npz("data.npz", images(bytesArray(30, 1, 6, 6)), marks(labels(30)))
	r.good("train", "mlp", "--data", "data.npz", "--batch", "4", "--steps", "3", "--out", "run")
	for _, args := range [][]string{
		{"train", "mlp", "--data", "data.npz", "--batch", "4", "--steps", "3", "--device", "null:t4"}, {"eval", "run", "--device", "null:t4"},
	} {
		status, stdout, stderr := command(t.Context(), args...)
		if status != exitDone || !strings.Contains(stdout, "memory only: nothing was computed") || !strings.Contains(stdout, "weights") || !strings.Contains(stdout, "peak in all") {
			t.Errorf("%q: status %d\n%s%s", args, status, stdout, stderr)
		}
		for _, not := range []string{"accuracy", "loss", "▄", "samples/s", " ms", "took", "ETA"} {
			if strings.Contains(stdout, not) {
				t.Errorf("%q says %q:\n%s", args, not, stdout)
			}
		}
		_, stdout, _ = command(t.Context(), append(args, "--json")...)
		lines := decode(t, stdout)
		last := lines[len(lines)-1]
		if args[0] == "train" {
			has(t, last, "final", "steps", "seconds", "peak_bytes")
		} else {
			has(t, last, "final", "samples", "set", "seconds", "peak_bytes")
		}
	}
	if _, err := os.Stat("runs"); err == nil {
		t.Error("a run that computes nothing has taken a number")
	}
	_, stdout, stderr := command(t.Context(), "train", "mlp", "--data", "data.npz", "--batch", "4", "--steps", "3", "--device", "null:t4", "--out", "kept", "--json")
	for _, l := range decode(t, stdout) {
		if _, ok := l["ms"]; ok {
			t.Errorf("a step that computes nothing takes time: %v", l)
		}
	}
	if _, err := os.Stat("kept"); err == nil || !strings.Contains(stderr, "note: ") || !strings.Contains(stderr, "kept") {
		t.Errorf("a folder that was asked for: %v\n%s", err, stderr)
	}
	r.file("data.txt", []byte(strings.Repeat("abc ", 100)))
	r.good("train", "gpt", "--data", "data.txt", "--batch", "2", "--steps", "1", "--context", "8", "--layers", "1", "--heads", "2", "--width", "8", "--out", "gpt")
	status, stdout, stderr := command(t.Context(), "sample", "gpt", "--device", "null:t4")
	if status != exitFailed || stdout != "" || strings.Count(stderr, "\n") != 2 {
		t.Errorf("sample: status %d\n%s\n%s", status, stdout, stderr)
	}
}

func TestQuoted(t *testing.T) {
	for path, want := range map[string]string{"runs/digits-1": "runs/digits-1", "my run": "'my run'", "it's": `'it'\''s'`, "": "''", "a;b": "'a;b'"} {
		if got := quoted(path); got != want {
			t.Errorf("%q is %s, want %s", path, got, want)
		}
	}
}

// TestHints: what is misspelt is guessed, and only a run is offered to be resumed.
func TestHints(t *testing.T) {
	r := newRoom(t)
	r.npz("data.npz", images(bytesArray(30, 1, 6, 6)), marks(labels(30)))
	r.good("train", "mlp", "--data", "data.npz", "--batch", "4", "--steps", "1", "--out", "run")
	r.file("full/notes", nil)
	for args, want := range map[string]string{
		"train digts": "did you mean digits?", "train --device null:a100-8": "did you mean null:a100-80?", "train --device cpv": "did you mean cpu?",
		"trian": "did you mean train?", "trian --steps 5": "did you mean train?", "sim rn --grid 4": "did you mean run?", "sim rn": "did you mean run?", "train --step 5": "did you mean --steps?", "train -steps=5": "did you mean --steps?",
		"eval": "RUN|WEIGHTS is missing", "sim run": "as in: warpline sim run add.ptx", "train mlp digits": `"digits" is one argument too many`,
		"eval .": "the folder of a run, such as run\n", "eval run/checkpoint-1": "such as run\n", "train --data rnu": "rnu: ",
		"train nonsense": "hint: choose", "train --out full": "give another --out\n", "train --out run": "or --resume",
	} {
		if _, _, stderr := command(t.Context(), strings.Fields(args)...); !strings.Contains(stderr, want) {
			t.Errorf("%s: no %q in\n%s", args, want, stderr)
		}
	}
	for args, want := range map[string]bool{"eval run --data data.npz": true, "eval run": false} {
		if _, _, stderr := command(t.Context(), strings.Fields(args)...); strings.Contains(stderr, "note: the samples that the run trained on") != want {
			t.Errorf("%s:\n%s", args, stderr)
		}
	}
}

// TestBesideEachOther: of runs that choose the same folder at the same time each gets one of its own.
func TestBesideEachOther(t *testing.T) {
	r := newRoom(t)
	r.npz("data.npz", images(bytesArray(30, 1, 6, 6)), marks(labels(30)))
	failed := make(chan string)
	for range 4 {
		go func() {
			status, stdout, stderr := command(context.Background(), "train", "mlp", "--data", "data.npz", "--batch", "4", "--steps", "2")
			if status == exitDone {
				stdout = ""
			}
			failed <- stdout + stderr
		}()
	}
	for range 4 {
		if text := <-failed; text != "" {
			t.Error(text)
		}
	}
	for _, n := range []string{"1", "2", "3", "4"} {
		if _, err := os.Stat("runs/mlp-" + n + "/model.safetensors"); err != nil {
			t.Error(err)
		}
	}
}

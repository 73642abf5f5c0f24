package diagnose

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/finding"
)

const full = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 222.41 GiB. GPU 0 has a total capacity of 23.56 GiB of which 22.66 GiB is free."

// ran gives the reports of a run.
func ran(t *testing.T, c *Config, names ...string) (all []*finding.Report, err error) {
	t.Helper()
	err = c.Run(context.Background(), names, func(r *finding.Report, _ bool) error {
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("%s: %v", r.File, err)
		}
		all = append(all, r)
		return nil
	})
	return all, err
}

func zipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func wideText(order binary.AppendByteOrder, mark bool, s string) []byte {
	var b []byte
	if mark {
		s = "\ufeff" + s
	}
	for _, u := range utf16.Encode([]rune(s)) {
		b = order.AppendUint16(b, u)
	}
	return b
}

func TestOneTextInManyForms(t *testing.T) {
	long := strings.Repeat("step 1 of 9\n", 20000) + full
	cut := zipped(t, []byte(full+"\n"+noise(1<<16)))
	for _, c := range []struct {
		name string
		b    []byte
		note string
	}{
		{"plain", []byte(full), ""},
		{"far behind the head", []byte(long), ""},
		{"gzip", zipped(t, []byte(full)), ""},
		{"cut gzip", cut[:len(cut)/2], "cut at its byte"},
		{"UTF-8 with a mark", []byte("\ufeff" + full), ""},
		{"UTF-16 LE", wideText(binary.LittleEndian, true, "Ошибка 😀 "+full), "UTF-16"},
		{"UTF-16 BE", wideText(binary.BigEndian, true, full), "UTF-16"},
		{"UTF-16 without a mark", wideText(binary.LittleEndian, false, full), "UTF-16"},
		{"half a character at its end", append(wideText(binary.LittleEndian, true, full), 0x41), "UTF-16"},
		{"broken UTF-8", []byte("\xff\xfe\xfd"[1:] + "\n\xc3(\n" + full), "not UTF-8"},
		{"colours and control characters", []byte("\x1b[31m" + strings.ReplaceAll(full, "GiB", "\x1b[1mGiB\x1b[0m") + "\x07"), "control"},
		{"lines of Windows", []byte("a\r\nb\r\n" + strings.ReplaceAll(full, ". ", ".\r\n")), ""},
		{"a bar of progress", []byte("  0%|  | 0/8\r 12%|# | 1/8\r" + full), ""},
		{"a line without end", []byte(full + "\n" + strings.Repeat("x", 1<<20)), "only the first"},
		{"HTML", []byte("<pre>" + strings.ReplaceAll(full, " ", "&nbsp;") + "</pre>"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := (&Config{}).Read(context.Background(), "-", bytes.NewReader(c.b), 0)
			if err != nil {
				t.Fatal(err)
			}
			if r.Kind != "error" && c.name != "far behind the head" || len(r.Findings) == 0 || r.Findings[0].Rule != "O01" {
				t.Fatalf("%s: %+v", r.Kind, r.Findings)
			}
			if notes := strings.Join(r.Notes, "; "); c.note == "" && notes != "" || !strings.Contains(notes, c.note) {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
		})
	}
}

// noise does not compress.
func noise(n int) string {
	var b strings.Builder
	x := uint64(1)
	for b.Len() < n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		fmt.Fprintf(&b, "%x\n", x)
	}
	return b.String()
}

func TestWhatIsNotUnderstood(t *testing.T) {
	for name, text := range map[string]string{
		"prose":            "It was a dark and stormy night; the rain fell in torrents.\nExcept at occasional intervals.\n",
		"a step in prose":  strings.Repeat("It goes on.\n", 60) + "In step 1 of the proof we see why.\n",
		"prose about NCCL": "NCCL is a library for collectives. Ranks talk over it.\n",
		"json":             `{"hello": "world"}`,
		"binary":           "\x7fELF\x02\x01\x01" + strings.Repeat("\x00\x01\x02", 300),
		"not gzip":         "\x1f\x8bhello",
		"empty":            "",
		"only a BOM":       "\ufeff",
	} {
		_, err := (&Config{}).Read(context.Background(), "a file", strings.NewReader(text), 0)
		if err == nil || !strings.HasPrefix(err.Error(), "a file") || advice.HintOf(err) == "" {
			t.Errorf("%s: %v; %q", name, err, advice.HintOf(err))
		}
	}
}

// TestDepthHasItsPlace: what is nested too deeply is told with the place.
func TestDepthHasItsPlace(t *testing.T) {
	for _, text := range []string{strings.Repeat("[", 20000), strings.Repeat(`{"a":`, 20000)} {
		_, err := (&Config{}).Read(context.Background(), "a file", strings.NewReader(text), 0)
		if err == nil || !strings.Contains(err.Error(), "nested too deeply to be read from byte ") {
			t.Error(err)
		}
	}
}

// TestNamedOnce: an error names its file, and once.
func TestNamedOnce(t *testing.T) {
	for _, text := range []string{"\x80\x04cposix\nsystem\nX\x04\x00\x00\x00true\x85R.", "<?xml version=\"1.0\" ?>\n<nvidia_smi_log><gpu"} {
		_, err := (&Config{}).Read(t.Context(), "some.file", strings.NewReader(text), 0)
		if err == nil || strings.Count(err.Error(), "some.file") != 1 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestBombIsRefused decompresses much from little: it is read in bounded memory, and refused.
func TestBombIsRefused(t *testing.T) {
	defer func(n int64) { ampleSize = n }(ampleSize)
	ampleSize = 32 << 20
	r, w := io.Pipe()
	go func() {
		z := gzip.NewWriter(w)
		block := bytes.Repeat([]byte("a"), 1<<20)
		for range 128 {
			if _, err := z.Write(block); err != nil {
				return
			}
		}
		w.CloseWithError(z.Close())
	}()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := (&Config{}).Read(context.Background(), "bomb.gz", r, 0)
	r.Close()
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "more than 200 times") || advice.HintOf(err) == "" {
		t.Error(err)
	}
	if after.HeapSys > before.HeapSys+32<<20 {
		t.Errorf("the heap grew by %d bytes", after.HeapSys-before.HeapSys)
	}
}

func TestFolderOfRanks(t *testing.T) {
	all, err := ran(t, &Config{}, "testdata/eight")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 9 {
		t.Fatal(len(all))
	}
	g := all[8]
	if g.Kind != "group" || len(g.Members) != 8 || g.Members[0] != filepath.Join("testdata", "eight", "node-1-rank0.log") {
		t.Fatalf("%s %v", g.Kind, g.Members)
	}
	f := g.Findings[0]
	if f.Rule != "J01" || !strings.HasPrefix(f.Title, "fix the program: rank 5 (node-2") || f.Line != "model.py:88" {
		t.Errorf("%s %s [%s]", f.Rule, f.Title, f.Line)
	}
	if g.Figures["verdict"] != "fix the program" || g.Figures["root_rank"] != 5 || g.Figures["root_node"] != "node-2" || g.Figures["world"] != 8 {
		t.Errorf("%v", g.Figures)
	}
}

// TestSizesNameTheRequest gives the model's sizes to the same folder: the request is the scores of the vocabulary.
func TestSizesNameTheRequest(t *testing.T) {
	c := &Config{}
	c.Sizes.Batch, c.Sizes.Context, c.Sizes.Vocab = 8, 2048, 128256
	all, err := ran(t, c, "testdata/eight")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all[8].Findings {
		if f.Rule == "O08" {
			return
		}
	}
	t.Errorf("%v", all[8].Findings)
}

func TestSeveralInputs(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a := write("a.log", full)
	write("in/b.log", full)
	write("in/.hidden", full)
	write("in/notes.md", "nothing of interest")
	one := filepath.Join(dir, "in")

	all, err := ran(t, &Config{Stdin: strings.NewReader(full)}, a, Stdin, filepath.Join(dir, "missing"), one)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	var said []string
	for _, r := range all {
		said = append(said, filepath.Base(r.File)+" "+r.Kind)
	}
	if got := strings.Join(said, ", "); got != "a.log error, standard input error, b.log error, in group" {
		t.Error(got)
	}
	if len(all[3].Findings) > 0 || !strings.Contains(strings.Join(all[3].Notes, ";"), "by itself: 1 of 1") {
		t.Errorf("a group of one: %+v", all[3])
	}
	if notes := strings.Join(all[3].Notes, ";"); !strings.Contains(notes, "notes.md") || strings.Contains(notes, "hidden") {
		t.Error(notes)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := ran(t, &Config{}, empty); err == nil || advice.HintOf(err) == "" {
		t.Error(err)
	}
}

// TestFolderWithOddEntries: links and a folder that may not be read are notes, and keep nothing else from being read.
func TestFolderWithOddEntries(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"rank0.log", "closed/rank1.log"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(full), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"standard.log is a link"}
	if err := os.Symlink(filepath.Join(dir, "rank0.log"), filepath.Join(dir, "standard.log")); err != nil {
		t.Skip(err)
	}
	if err := os.Chmod(filepath.Join(dir, "closed"), 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(dir, "closed"), 0o777)
	if _, err := os.ReadDir(filepath.Join(dir, "closed")); err != nil { // root may read all
		want = append(want, "closed: permission denied")
	}
	all, err := ran(t, &Config{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(all[len(all)-1].Notes, "; ")
	for _, w := range want {
		if !strings.Contains(notes, w) {
			t.Errorf("no %q in %q", w, notes)
		}
	}
}

// TestPartsOnlyWhereCompared: a file that nothing is compared with is told whole, in a folder too.
func TestPartsOnlyWhereCompared(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"job.log": full, "dmesg.txt": "[    9.000001] NVRM: Xid (PCI:0000:65:00): 79, pid=1, GPU has fallen off the bus.\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	if err := (&Config{}).Run(t.Context(), []string{dir}, func(r *finding.Report, part bool) error {
		if part {
			t.Errorf("%s is told in a line", r.File)
		}
		n++
		return nil
	}); err != nil || n != 3 {
		t.Error(n, err)
	}
}

func TestInterruptedAndUnwritten(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := (&Config{}).Run(ctx, []string{"testdata/eight"}, func(*finding.Report, bool) error { t.Error("told"); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	broken := errors.New("no room")
	n := 0
	err = (&Config{}).Run(context.Background(), []string{"testdata/eight"}, func(*finding.Report, bool) error { n++; return broken })
	if !errors.Is(err, broken) || n != 1 {
		t.Error(n, err)
	}
}

// TestContract has the names that programs rely on.
func TestContract(t *testing.T) {
	all, err := ran(t, &Config{}, "testdata/eight")
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(all[8])
	if err != nil {
		t.Fatal(err)
	}
	var line map[string]any
	if err := json.Unmarshal(b, &line); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"file", "kind", "figures", "findings", "checked", "members"} {
		if line[key] == nil {
			t.Errorf("the line has no %q", key)
		}
	}
	f := line["findings"].([]any)[0].(map[string]any)
	for _, key := range []string{"rule", "title", "evidence", "fix", "gain", "confidence", "disproved_by", "line"} {
		if f[key] == nil {
			t.Errorf("a finding has no %q", key)
		}
	}
	healthy, err := (&Config{}).Read(context.Background(), "-", strings.NewReader("step 1 loss 2\nstep 2 loss 1\n"), 0)
	if err != nil {
		t.Fatal(err)
	}
	b, _ = json.Marshal(tidied(healthy))
	if !strings.Contains(string(b), `"findings":[]`) || len(healthy.Checked) == 0 {
		t.Errorf("%s", b)
	}
}

func TestFiguresThatAreNoNumbers(t *testing.T) {
	zero := 0.0
	r := tidied(&finding.Report{Figures: map[string]any{"busy": 0.5, "share": zero / zero}})
	if len(r.Figures) != 1 || len(r.Notes) != 1 {
		t.Errorf("%v %v", r.Figures, r.Notes)
	}
}

func TestScreen(t *testing.T) {
	all, err := ran(t, &Config{}, "testdata/eight")
	if err != nil {
		t.Fatal(err)
	}
	for _, width := range []int{40, 80, 120} {
		var b strings.Builder
		if err := Screen(&b, all[8], width); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"1. fix the program: rank 5", "do:   halve", "sure: high (J01)"} {
			if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), strings.Join(strings.Fields(want), " ")) {
				t.Errorf("width %d: no %q in\n%s", width, want, b.String())
			}
		}
		b.Reset()
		if err := Brief(&b, all[0], width); err != nil || strings.Count(b.String(), "\n") != 1 {
			t.Errorf("%q %v", b.String(), err)
		}
	}
}

func TestNaturalOrder(t *testing.T) {
	for _, c := range [][2]string{{"rank2", "rank10"}, {"a", "b"}, {"rank2.log", "rank2a.log"}, {"n1/r9", "n2/r1"}, {"x", "x1"}} {
		if natural(c[0], c[1]) >= 0 || natural(c[1], c[0]) <= 0 || natural(c[0], c[0]) != 0 {
			t.Error(c)
		}
	}
}

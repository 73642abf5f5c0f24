package lesson

import (
	"archive/zip"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/warpline-ml/warpline/examples/lessons"
	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/exercise"
	"github.com/warpline-ml/warpline/internal/sources"
	"github.com/warpline-ml/warpline/tensor"
)

// Setting is how a listing is run.
type Setting struct {
	Numbers lessons.Numbers `json:"numbers"`
	Device  string          `json:"device"` // "best" chooses
	Wrong   bool            `json:"wrong"`  // with the mistake
}

// Check fills what is left out with what the listing has, and refuses what is out of bounds.
func (s *Setting) Check(l *lessons.Listing) error {
	if l.Run == nil {
		return advice.Failf("warpline learn listing "+l.ID+" has the program in PyTorch", "%s cannot be run: %s", l.ID, l.Absent)
	}
	if s.Wrong && l.Wrong == nil {
		return advice.Failf("leave --wrong out", "%s has no program with a mistake", l.ID)
	}
	n := l.Values()
	for name, v := range s.Numbers {
		i := slices.IndexFunc(l.Numbers, func(n lessons.Number) bool { return n.Name == name })
		if i < 0 {
			return advice.Failf("it has: "+strings.Join(names(l), ", "), "%s has no number called %q", l.ID, name)
		}
		if b := l.Numbers[i]; v < b.Min || v > b.Max {
			return advice.Failf(fmt.Sprintf("give one from %d to %d", b.Min, b.Max), "%s=%d of %s is out of bounds", name, v, l.ID)
		}
		n[name] = v
	}
	if s.Numbers = n; s.Device == "" {
		s.Device = "cpu"
	}
	return nil
}

func names(l *lessons.Listing) (list []string) {
	for _, n := range l.Numbers {
		list = append(list, n.Name)
	}
	return list
}

// Run runs a listing in this process. What the program does wrong on tensors is an error.
func Run(l *lessons.Listing, s Setting, w io.Writer) error {
	if err := s.Check(l); err != nil {
		return err
	}
	env := tensor.Best()
	if s.Device != "best" {
		var err error
		if env, err = tensor.Fresh(s.Device); err != nil {
			return err
		}
	}
	program := l.Run
	if s.Wrong {
		program = l.Wrong.Run
	}
	var failed error
	_, err := env.Try(func(env *tensor.Env) *tensor.Tensor {
		failed = program(env, s.Numbers, w)
		return nil
	})
	return errors.Join(failed, err)
}

// Bounds of a run that a page asked for.
const (
	longest   = 2 * time.Minute
	mostBytes = 64 << 10
	mostRuns  = 3 // at a time
)

// runs are those that pages have asked for.
type runs struct {
	program []string // the command that has "learn run"

	mu  sync.Mutex
	all map[string]*run
}

// run is a listing in a process of its own.
type run struct {
	stop context.CancelFunc

	mu     sync.Mutex
	more   chan struct{} // closed when something comes
	output []byte
	cut    bool // there was more than mostBytes
	ended  bool
	exit   int
}

// start begins a run, or says why not.
func (rs *runs) start(l *lessons.Listing, s Setting) (id string, err error) {
	if err := s.Check(l); err != nil {
		return "", err
	}
	if !slices.Contains(Devices, s.Device) {
		return "", advice.Failf("choose one of "+strings.Join(Devices, ", "), "no device of a cell is called %q", s.Device)
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if busy := rs.busy(); busy >= mostRuns {
		return "", advice.Failf("stop one, or wait", "%d programs run already", busy)
	}
	args := append(slices.Clone(rs.program[1:]), "learn", "run", l.ID, "--device", s.Device)
	if s.Wrong {
		args = append(args, "--wrong")
	}
	for _, n := range l.Numbers {
		args = append(args, "--set", fmt.Sprintf("%s=%d", n.Name, s.Numbers[n.Name]))
	}
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	r := &run{stop: cancel, more: make(chan struct{})}
	cmd := exec.CommandContext(ctx, rs.program[0], args...)
	cmd.Stdout, cmd.Stderr = r, r
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		cancel()
		return "", err
	}
	id = rand.Text()
	rs.all[id] = r
	go r.wait(cmd, ctx)
	return id, nil
}

// close ends all, and waits until their processes are gone.
func (rs *runs) close() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, r := range rs.all {
		r.stop()
		r.follow(context.Background(), func(event) {})
	}
}

// busy counts runs that have not ended, and forgets all but the latest of the others.
func (rs *runs) busy() (n int) {
	for id, r := range rs.all {
		r.mu.Lock()
		ended := r.ended
		r.mu.Unlock()
		if !ended {
			n++
		} else if len(rs.all) > 20 {
			delete(rs.all, id)
		}
	}
	return n
}

func (rs *runs) find(id string) (*run, bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r, ok := rs.all[id]
	return r, ok
}

// Write takes output of the process, up to a bound.
func (r *run) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cut {
		return len(p), nil
	}
	kept := min(mostBytes-len(r.output), len(p))
	r.output = append(r.output, p[:kept]...)
	if r.cut = kept < len(p); r.cut {
		r.output = append(r.output, "\n… more than is kept; run it in a terminal to see all\n"...)
	}
	r.tell()
	return len(p), nil
}

// tell wakes who waits; the caller has the lock.
func (r *run) tell() {
	close(r.more)
	r.more = make(chan struct{})
}

func (r *run) wait(cmd *exec.Cmd, ctx context.Context) {
	err := cmd.Wait()
	late := ctx.Err() == context.DeadlineExceeded
	r.stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended, r.exit = true, cmd.ProcessState.ExitCode()
	if late {
		r.output = append(r.output, fmt.Sprintf("\nstopped: it took longer than %v\n", longest)...)
	} else if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		r.output = append(r.output, "\n"+err.Error()+"\n"...)
	}
	r.tell()
}

// event is a line that pages are told of a run.
type event struct {
	Text string `json:"text,omitempty"`
	Exit *int   `json:"exit,omitempty"`
}

// follow calls tell with what comes, until the run ends or ctx does.
func (r *run) follow(ctx context.Context, tell func(event)) {
	seen := 0
	for {
		r.mu.Lock()
		text, ended, exit, more := string(r.output[seen:]), r.ended, r.exit, r.more
		r.mu.Unlock()
		if !ended {
			text = unbroken(text)
		}
		seen += len(text)
		if text != "" {
			tell(event{Text: text})
		}
		if ended {
			tell(event{Exit: &exit})
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}

// unbroken is a text without the beginning of a character at its end, of which the rest is to come.
func unbroken(text string) string {
	for i := len(text) - 1; i >= max(0, len(text)-utf8.UTFMax); i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRuneInString(text[i:]) {
				return text[:i]
			}
			break
		}
	}
	return text
}

// Export writes a listing as a Go folder in a zip file: a main program and its go.mod, which asks for a version of Warpline.
func Export(w io.Writer, l *lessons.Listing, version string) error {
	files, err := exported(l, version)
	if err != nil {
		return err
	}
	z := zip.NewWriter(w)
	for _, f := range files {
		out, err := z.Create(strings.ToLower(l.ID) + "/" + f[0])
		if err == nil {
			_, err = io.WriteString(out, f[1])
		}
		if err != nil {
			return err
		}
	}
	return z.Close()
}

// exported are the files of a listing's folder: names and contents.
func exported(l *lessons.Listing, version string) (files [][2]string, err error) {
	base := strings.ToLower(l.ID)
	for _, name := range needs(base) {
		source, err := fs.ReadFile(programs, name+".go")
		if err != nil {
			return nil, err
		}
		files = append(files, [2]string{name + ".go", strings.Replace(string(source), "package lessons", "package main", 1)})
	}
	numbers, err := json.Marshal(l.Values())
	if err != nil {
		return nil, err
	}
	main := fmt.Sprintf(mainProgram, strings.NewReplacer(`:`, `: `, `,`, `, `).Replace(string(numbers)), l.ID)
	files = append(files, [2]string{"main.go", main})
	if sources.Have() {
		return withCopy(files, version)
	}
	if !strings.HasPrefix(version, "v") {
		version = "v0.0.0" // of a program that was built from a copy of the sources: see README
	}
	mod := "module lesson\n\ngo 1.26\n\nrequire github.com/warpline-ml/warpline " + version + "\n"
	readme := "go mod tidy && go run .\n\nIf go.mod asks for v0.0.0, the program that wrote it was built from a copy of the sources, DIR: then first\ngo mod edit -replace github.com/warpline-ml/warpline=DIR\n"
	return append(files, [2]string{"go.mod", mod}, [2]string{"README", readme}), nil
}

// withCopy adds what finds the copy of Warpline's sources that this program has.
func withCopy(files [][2]string, version string) ([][2]string, error) {
	source, err := sources.Folder()
	if err != nil {
		return nil, err
	}
	mod, err := exercise.Modules("lesson", source, version)
	if err != nil {
		return nil, err
	}
	for _, f := range mod {
		files = append(files, [2]string{f.Name, f.Text})
	}
	return append(files, [2]string{"README", "go run .\n\n" + exercise.From(source) + "\n"}), nil
}

// mainProgram runs a listing's function.
const mainProgram = `package main

import (
	"flag"
	"log"
	"os"

	"github.com/warpline-ml/warpline/tensor"
)

// Numbers are what may be changed in the program.
type Numbers map[string]int

func main() {
	device := flag.String("device", "", "the device; the best one if none is given")
	flag.Parse()
	env := tensor.Best()
	if *device != "" {
		var err error
		if env, err = tensor.Open(*device); err != nil {
			log.Fatal(err)
		}
	}
	if err := %[2]s(env, Numbers%[1]s, os.Stdout); err != nil {
		log.Fatal(err)
	}
}
`

// needs are the files that a listing's file uses, itself first.
func needs(base string) []string {
	switch base {
	case "l06", "l29":
		return []string{base, "l05"}
	case "l07":
		return []string{base, "l06", "l05"}
	}
	return []string{base}
}

// self is this program, as a command.
func self() ([]string, error) {
	path, err := os.Executable()
	return []string{path}, err
}

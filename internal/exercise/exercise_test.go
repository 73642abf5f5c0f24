package exercise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestExercises: each has a title, what to do, and hints in steps; names are those of no other.
func TestExercises(t *testing.T) {
	seen := map[string]bool{}
	count := map[bool]int{}
	for _, e := range All() {
		if e.Title == "" || e.About == "" || e.Minutes < 5 || len(e.Hints) < 2 || seen[e.Name] {
			t.Errorf("%+v", e)
		}
		seen[e.Name] = true
		count[e.Puzzle]++
		for n := range e.Hints {
			if h, err := e.Hint(n + 1); err != nil || h == "" {
				t.Errorf("%s: hint %d: %q, %v", e.Name, n+1, h, err)
			}
		}
		for _, n := range []int{0, -1, len(e.Hints) + 1} {
			if _, err := e.Hint(n); err == nil {
				t.Errorf("%s has a hint %d", e.Name, n)
			}
		}
		if s, err := e.Solution(); err != nil || len(s) == 0 {
			t.Errorf("%s: %v", e.Name, err)
		}
	}
	if count[true] < 12 || count[false] < 6 {
		t.Errorf("%v exercises", count)
	}
}

// puzzleFolder is a folder of a puzzle with its kernel in a form.
func puzzleFolder(t *testing.T, e *Exercise, form string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "work")
	if err := e.Start(dir, "", ""); err != nil {
		t.Fatal(err)
	}
	list, err := e.puzzle.files(form)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if err := os.WriteFile(filepath.Join(dir, f.Name), []byte(f.Text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestPuzzles: what a puzzle begins with fails, with a hint, and its solution passes.
func TestPuzzles(t *testing.T) {
	for _, e := range All() {
		if !e.Puzzle {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			for form, pass := range map[string]bool{"start": false, "solution": true} {
				r, err := Check(t.Context(), puzzleFolder(t, e, form))
				if err != nil || r.Pass != pass || (r.Hint == "") != pass || r.Name != e.Name {
					t.Errorf("%s: %+v, %v", form, r, err)
				}
			}
		})
	}
}

// wrongAnswers are changes that learners make to kernels in CUDA C++ or PTX, with words of the hint that helps.
var wrongAnswers = []struct{ puzzle, from, to, hint string }{
	{"kernel-map", "0f41200000", "0f41300000", "by hand"},              // adds 11
	{"kernel-guard", "setp.ge.s32", "setp.gt.s32", "beside the data"},  // one too many
	{"kernel-guard", "0f41200000", "0f41100000", "by hand"},            // adds 9
	{"kernel-stride", "setp.lt.s32", "setp.le.s32", "beside the data"}, // one too many
	{"kernel-reverse", "bar.sync \t0;", "", "__syncthreads"},           // no barrier
	{"kernel-dot", "bar.sync \t0;", "", "__syncthreads"},               // none at all
	{"kernel-scan", "bar.sync \t0;", "", "__syncthreads"},              // likewise
	{"kernel-matmul", "bar.sync \t0;", "", "__syncthreads"},            // likewise
	{"kernel-convolution", "setp.gt.s32", "setp.ge.s32", "n - taps"},   // one too few
	{"kernel-pool", "bar.sync \t0;", "", "__syncthreads"},              // no barrier
	{"kernel-transpose", "bar.sync \t0;", "", "__syncthreads"},         // no barrier
}

// TestWrongAnswers: four of five get the hint that helps. Beside changes of solutions there are whole kernels in testdata/wrong, written
// from what a puzzle says alone: in their first line is what the hint must say, and _files/puzzles/build.sh compiles them.
func TestWrongAnswers(t *testing.T) {
	right, all := 0, 0
	judge := func(of, ptx string, puzzle, hint string) {
		e, err := Find(puzzle)
		if err != nil {
			t.Fatal(err)
		}
		all++
		r, err := e.Judge(t.Context(), ptx)
		switch {
		case err != nil || r.Pass:
			t.Errorf("%s: %+v, %v", of, r, err)
		case regexp.MustCompile(hint).MatchString(r.Hint):
			right++
		default:
			t.Logf("%s: hint %q", of, r.Hint)
		}
	}
	for _, w := range wrongAnswers {
		e, err := Find(w.puzzle)
		if err != nil {
			t.Fatal(err)
		}
		solution, err := e.Solution()
		if err != nil {
			t.Fatal(err)
		}
		text := solution[slices.IndexFunc(solution, func(f File) bool { return f.Name == "kernel.ptx" })].Text
		if !strings.Contains(text, w.from) {
			t.Errorf("%s has no %q", w.puzzle, w.from)
			continue
		}
		judge(fmt.Sprintf("%s with %q", w.puzzle, w.to), strings.ReplaceAll(text, w.from, w.to), w.puzzle, w.hint)
	}
	sources, err := filepath.Glob("testdata/wrong/*.cu")
	if err != nil || len(sources) < 3*13 {
		t.Fatalf("%d wrong answers: %v", len(sources), err)
	}
	for _, path := range sources {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		ptx, err := os.ReadFile(strings.TrimSuffix(path, ".cu") + ".ptx")
		if err != nil {
			t.Fatal(err)
		}
		helps, _, _ := strings.Cut(strings.TrimPrefix(string(source), "// helps: "), "\n")
		name, _, _ := strings.Cut(filepath.Base(path), ".")
		judge(path, string(ptx), "kernel-"+name, helps)
	}
	t.Logf("%d of %d get the hint that helps", right, all)
	if 5*right < 4*all {
		t.Errorf("%d of %d get the hint that helps", right, all)
	}
}

// TestBroken: what is no kernel, or no folder of an exercise, is an error with what to do.
func TestBroken(t *testing.T) {
	e, err := Find("kernel-map")
	if err != nil {
		t.Fatal(err)
	}
	dir := puzzleFolder(t, e, "start")
	if err := e.Start(dir, "", ""); err == nil {
		t.Error("a folder that is there is written over")
	}
	if err := os.WriteFile(filepath.Join(dir, "kernel.ptx"), []byte("no PTX"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := Check(t.Context(), dir); err == nil {
		t.Errorf("%+v", r)
	}
	if err := os.WriteFile(filepath.Join(dir, mark), []byte(`{"name":"other"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, t.TempDir()} {
		if r, err := Check(t.Context(), d); err == nil {
			t.Errorf("%+v", r)
		}
	}
	g, err := Find("activations")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{"", t.TempDir()} {
		var told *advice.Error
		if err := g.Start(filepath.Join(t.TempDir(), "x"), source, "(devel)"); !errors.As(err, &told) || told.Hint == "" {
			t.Errorf("--source %q: %v", source, err)
		}
	}
}

// TestVersion: with a published version the folder asks for that.
func TestVersion(t *testing.T) {
	list, err := Modules("exercise", "", "v1.2.3")
	if err != nil || len(list) != 1 || !strings.Contains(list[0].Text, "require "+module+" v1.2.3\n") {
		t.Errorf("%v, %v", list, err)
	}
}

// TestAbove: a program that is run in a checkout finds Warpline's sources there, and nowhere else.
func TestAbove(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if got := Above(); got != root {
		t.Errorf("%q in place of %q", got, root)
	}
	t.Chdir(t.TempDir())
	if got := Above(); got != "" {
		t.Errorf("%q in a folder without them", got)
	}
}

// TestNoFolder: what is said of PTX from a page names no folder of this machine.
func TestNoFolder(t *testing.T) {
	e, err := Find("kernel-map")
	if err != nil {
		t.Fatal(err)
	}
	for _, ptx := range []string{"", "garbage", ".version 7.4\n.target sm_75\n.address_size 64\n.visible .entry other() { ret; }"} {
		if _, err := e.Judge(t.Context(), ptx); err == nil || strings.Contains(err.Error(), os.TempDir()) || advice.HintOf(err) == "" || strings.Contains(advice.HintOf(err), os.TempDir()) {
			t.Errorf("%q: %v; %s", ptx, err, advice.HintOf(err))
		}
	}
}

// TestRead: results of go test, of what does not compile, and of a panic.
func TestRead(t *testing.T) {
	for _, c := range []struct {
		out, hint string
		pass      bool
		tests     int
	}{
		{`{"Action":"pass","Test":"TestA"}` + "\n" + `{"Action":"pass"}`, "", true, 1},
		{`{"Action":"output","Test":"TestA","Output":"x_test.go:1: no; hint: do this\n"}` + "\n" + `{"Action":"fail","Test":"TestA"}` + "\n" + `{"Action":"fail"}`, "do this", false, 1},
		{`{"Action":"build-output","Output":"x.go:1: undefined: y\n"}` + "\n" + `{"Action":"fail"}`, "what the compiler", false, 1},
		{`{"Action":"output","Test":"TestA","Output":"panic: oh\n"}` + "\n" + `{"Action":"fail","Test":"TestA"}` + "\n" + `{"Action":"fail"}`, "the program panics", false, 1},
	} {
		var r Report
		r.read([]byte(c.out))
		if r.Pass != c.pass || !strings.HasPrefix(r.Hint, c.hint) || len(r.Tests) != c.tests {
			t.Errorf("%s: %+v", c.out, r)
		}
	}
}

// wrongGo are changes that learners make to programs that are right, with words of the hint that helps.
var wrongGo = []struct{ exercise, from, to, more, hint string }{
	{"device-agnostic", "y.To(env)", "y", "", "y.To(env)"},
	{"device-agnostic", "x.To(env)", "x", "", "x.To(env)"},
	{"device-agnostic", "opt.Step()", "_ = opt", "", "Backward and then Step"},
	{"device-agnostic", "nn.NewLinear(env.Seed(7)", "nn.NewLinear(tensor.Best().Seed(7)", "", "name a device"},
	{"activations", "m.Peak - m.Before", "m.Peak", "", "less what was there before"},
	{"activations", "x.In(env)", "x.In(env.NoGrad())", "", "recording must be on"},
	{"activations", "m.Kept", "m.Net", "", "Kept"},
	{"transfer-benchmark", "t.Median.Seconds() / 1e9", "t.Median.Seconds() / (1 << 30)", "", "10⁹"},
	{"transfer-benchmark", "t.Median.Seconds()", "float64(t.Median.Milliseconds())", "", "divided by seconds"},
	{"transfer-benchmark", "int(50*r.GBps/most)", "20", "", "a bar as long"},
	{"transfer-benchmark", "int(50*r.GBps/most)", "int(r.GBps)/10", "", "a bar as long"},
	{"mixed-precision", "env.Autocast(dtype.BF16)", "func() *tensor.Env { _ = dtype.BF16; return env }()", "", "Autocast"},
	{"mixed-precision", "model.Forward(x.In(env))", "model.Forward(x)", "", "x.In"},
	{"mixed-precision", "env = env.Seed(3)", "runs++\n\tenv = env.Seed(runs)", "var runs uint64", "same weights"},
	{"mixed-precision", "m.Peak - m.Before", "m.Peak", "", "less its Before"},
	{"memory-tracker", "env.Device().ResetPeak()", "", "", "reset the peak"},
	{"memory-tracker", "note(env, m)\n\tenv", "env", "", "must remember its own"},
	{"memory-tracker", "1e6", "(1 << 20)", "", "10⁶"},
	{"memory-tracker", "float64(m.Used-t.began)", "float64(m.Used)", "", "less in use at the beginning"},
	{"broken-training", "loss.Backward()", "fmt.Fprintln(Log, loss.Item())\n\t\t\tloss.Backward()", "", "Later"},
	{"broken-training", "loss.Backward()", "loss.Backward()\n\t\t\tnn.MSE(model.Forward(x.In(env)), y).Backward()", "", "one Backward"},
	{"broken-training", "loss.Backward()", "history = append(history, loss.Keep())\n\t\t\tloss.Backward()", "var history []*tensor.Tensor", "keep numbers"},
}

// wrongForms are the wrong answers to an exercise in Go by their folders: changes of its solution by wrongGo, and whole files of
// testdata/wrong, written from what the exercise says alone.
func wrongForms(t *testing.T, e *Exercise, solution string) map[string]wrongForm {
	t.Helper()
	all := map[string]wrongForm{}
	for i, w := range wrongGo {
		if w.exercise != e.Name {
			continue
		}
		if !strings.Contains(solution, w.from) {
			t.Errorf("the solution of %s has no %q", e.Name, w.from)
		}
		all[fmt.Sprintf("wrong%d", i)] = wrongForm{strings.ReplaceAll(solution, w.from, w.to) + "\n" + w.more + "\n", regexp.QuoteMeta(w.hint)}
	}
	written, err := filepath.Glob("testdata/wrong/" + e.Name + ".*.go.txt")
	if err != nil || len(written) < 3 {
		t.Errorf("%s has %d wrong answers: %v", e.Name, len(written), err)
	}
	for _, path := range written {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		helps, _, _ := strings.Cut(strings.TrimPrefix(string(text), "// helps: "), "\n")
		all["written"+strings.Split(filepath.Base(path), ".")[1]] = wrongForm{string(text), helps}
	}
	return all
}

// wrongForm is a wrong answer with what the hint must say.
type wrongForm struct{ text, hint string }

// forms are the files of an exercise in Go as it begins, as it is solved, and with each wrong answer.
func forms(t *testing.T, e *Exercise, root string) (all map[string][]File, wrong map[string]wrongForm) {
	t.Helper()
	folder, err := e.begin(root, "")
	if err != nil {
		t.Fatal(err)
	}
	solution, err := e.Solution()
	if err != nil {
		t.Fatal(err)
	}
	all = map[string][]File{"start": folder, "solution": slices.Concat(folder, solution)}
	wrong = wrongForms(t, e, solution[0].Text)
	for form, w := range wrong {
		all[form] = slices.Concat(folder, []File{{solution[0].Name, w.text}})
	}
	return all, wrong
}

// TestGoExercises: what an exercise in Go begins with fails its tests, its solution passes them, and of wrong answers four of five
// get the hint that helps. All of them go into one module, which finds Warpline by --source, with nothing fetched; and as linking
// takes what time there is, into one program that has their tests. Of wrong answers a run takes a third.
func TestGoExercises(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program of all exercises")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	overlay := map[string]string{}
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(name, "go.") {
			overlay[filepath.Join("forms", name)] = path
		}
	}
	var imports, calls strings.Builder
	wrong, spread := map[string]wrongForm{}, testutil.NewSpread(t, testutil.Seed(t), 3)
	for _, e := range All() {
		if e.Puzzle {
			continue
		}
		these, wrongs := forms(t, e, root)
		for form, w := range wrongs {
			if name := e.Name + "/" + form; spread.Takes(name) {
				wrong[name] = w
			} else {
				delete(these, form)
			}
		}
		for form, list := range these {
			alias := strings.ReplaceAll(e.Name, "-", "") + form
			fmt.Fprintf(&imports, "\t%s \"%s/internal/exercise/forms/%s/%s\"\n", alias, module, e.Name, form)
			for _, f := range list {
				switch {
				case strings.HasPrefix(f.Name, "go."):
					write(f.Name, f.Text)
				case f.Name == "exercise_test.go":
					write(filepath.Join(e.Name, form, "tests.go"), f.Text) // importable
					for _, m := range regexp.MustCompile(`func (Test\w+)\(`).FindAllStringSubmatch(f.Text, -1) {
						fmt.Fprintf(&calls, "\tt.Run(%q, guarded(%s.%s))\n", e.Name+"/"+form+"/"+m[1], alias, m[1])
					}
				case strings.HasSuffix(f.Name, ".go"):
					write(filepath.Join(e.Name, form, f.Name), f.Text)
				}
			}
		}
	}
	resolved(t, dir)
	write("all_test.go", "package all\n\nimport (\n\t\"testing\"\n"+imports.String()+")\n\nfunc TestAll(t *testing.T) {\n"+calls.String()+"}\n"+guarded)
	all := judged(t, testutil.Overlay(t, overlay))
	for _, e := range All() {
		if e.Puzzle {
			continue
		}
		solved, begun := all[e.Name+"/solution"], all[e.Name+"/start"]
		if solved == nil || begun == nil {
			t.Fatalf("%s has no results: %v", e.Name, all)
		}
		for _, test := range solved.Tests {
			if !test.Pass {
				t.Errorf("the solution of %s fails %s: %s", e.Name, test.Name, test.Output)
			}
		}
		for _, test := range begun.Tests {
			if !test.Pass && !strings.Contains(test.Output, "hint: ") {
				t.Errorf("%s fails without a hint: %s", e.Name, test.Output)
			}
		}
		if begun.Pass {
			t.Errorf("what %s begins with passes", e.Name)
		}
	}
	right := 0
	for at, w := range wrong {
		r := all[at]
		switch {
		case r == nil || r.Pass:
			t.Errorf("%s passes:\n%s", at, w.text)
		case regexp.MustCompile(w.hint).MatchString(r.Hint):
			right++
		default:
			t.Logf("%s: hint %q", at, r.Hint)
		}
	}
	t.Logf("%d of %d get the hint that helps", right, len(wrong))
	if spread.All() && 5*right < 4*len(wrong) {
		t.Errorf("%d of %d get the hint that helps", right, len(wrong))
	}
}

// guarded runs a test of which a panic is its own failure, as it is where a folder is tested by itself.
const guarded = `
func guarded(test func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) {
		defer func() {
			if p := recover(); p != nil {
				t.Errorf("panic: %v", p)
			}
		}()
		test(t)
	}
}
`

// resolved makes sure that the module in a folder finds all that it imports, with nothing fetched.
func resolved(t *testing.T, dir string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-mod=mod", "-deps", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), module+"/tensor\n") {
		t.Errorf("%v: %s", err, out)
	}
}

// judged are the reports by exercise and form of the tests of a program, that of all forms in the folder "forms" of an overlay.
func judged(t *testing.T, overlay string) map[string]*Report {
	t.Helper()
	program := filepath.Join(t.TempDir(), "forms.exe")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", program, overlay, "./forms")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), "go", "tool", "test2json", program, "-test.v=test2json")
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	if len(out) == 0 {
		t.Fatal(err)
	}
	var whole Report
	whole.read(out)
	all := map[string]*Report{}
	for _, test := range whole.Tests {
		name := strings.Split(test.Name, "/")
		if len(name) != 4 {
			continue
		}
		at := name[1] + "/" + name[2]
		if all[at] == nil {
			all[at] = &Report{Name: name[1]}
		}
		all[at].Tests = append(all[at].Tests, test)
	}
	if len(all) == 0 {
		t.Fatalf("no results: %+v", whole.Tests)
	}
	for _, r := range all {
		r.judge()
	}
	return all
}

// TestGone: a folder whose go.mod names sources that are no more says so, and what to do.
func TestGone(t *testing.T) {
	dir, gone := t.TempDir(), filepath.Join(t.TempDir(), "ca che", "sources-0")
	for _, where := range []string{strconv.Quote(gone), gone} {
		for name, text := range map[string]string{mark: `{"name":"memory-tracker"}`, "go.mod": "module exercise\n\nreplace " + module + " => " + where + "\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Check(t.Context(), dir)
		var told *advice.Error
		if !errors.As(err, &told) || !strings.Contains(told.Text, gone+", which is gone") || !strings.Contains(told.Hint, "learn start") {
			t.Errorf("%s: %v", where, err)
		}
	}
}

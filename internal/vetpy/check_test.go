package vetpy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/warpline-ml/warpline/internal/vet"
	"github.com/warpline-ml/warpline/internal/vet/vettest"
)

// got are "line rule" of what is found.
func got(t *testing.T, name, source string) (all []string) {
	t.Helper()
	found, err := Check(name, []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Title == "" || f.Fix == "" || f.Gain.Text == "" || f.DisprovedBy == "" || f.Confidence == "" {
			t.Errorf("%s:%d: %s is not whole: %+v", name, f.Line, f.Rule, f.Finding)
		}
		all = append(all, fmt.Sprintf("%d %s", f.Line, f.Rule))
	}
	slices.Sort(all)
	return all
}

// TestExamples: each rule finds its broken program and nothing else in it, and nothing in the mended one.
func TestExamples(t *testing.T) {
	vettest.Examples(t, vet.Python, "python", func(r vet.Rule, broken, mended string) {
		for name, source := range map[string]string{"broken": broken, "mended": mended} {
			if d := vettest.Unlike(vettest.Wanted(source), got(t, r.ID+"_"+name+".py", source)); d != "" {
				t.Errorf("%s, %s: wanted, got:\n%s", r.ID, name, d)
			}
		}
	})
}

// TestPrograms: what is planted is found, and what is near to it is not.
func TestPrograms(t *testing.T) {
	var sources []string
	for _, file := range must(filepath.Glob("testdata/*.py")) {
		source := string(must(os.ReadFile(file)))
		if d := vettest.Unlike(vettest.Wanted(source), got(t, file, source)); d != "" {
			t.Errorf("%s: wanted, got:\n%s", file, d)
		}
		sources = append(sources, source)
	}
	sources = append(sources, string(must(os.ReadFile("testdata/ways.txt"))))
	vettest.Enough(t, vet.Python, sources, 2, 2) // and the two of the examples
}

// TestWays: what is planted is found in whatever way a training is written.
func TestWays(t *testing.T) {
	programs := strings.Split(string(must(os.ReadFile("testdata/ways.txt"))), "\n### ")[1:]
	for _, p := range programs {
		title, source, _ := strings.Cut(p, "\n")
		if d := vettest.Unlike(vettest.Wanted(source), got(t, "way.py", source)); d != "" {
			t.Errorf("%s: wanted, got:\n%s", title, d)
		}
	}
}

// TestShortened: a text is cut between characters.
func TestShortened(t *testing.T) {
	for n := range 4 {
		s := shortened(strings.Repeat("x", n) + strings.Repeat("€", 40))
		if !utf8.ValidString(s) || len(s) > 60 || len(s) < 57 || !strings.HasSuffix(s, "€...") {
			t.Errorf("%q", s)
		}
	}
}

// TestLong: what comes behind a long expression, or behind many conditions, is found.
func TestLong(t *testing.T) {
	const training = "for x, y in loader:\n    loss = model(x)\n    loss.backward()\n    opt.step()\n"
	for name, long := range map[string]string{
		"calls":      "x = query" + strings.Repeat(".m(1)", 40),
		"attributes": "x" + strings.Repeat(".a", 5000) + " = 1",
		"sum":        "x = 1" + strings.Repeat(" +\\\n y", 5000),
		"guards":     "for x in y:\n" + strings.Repeat("    if a: continue\n", 5000) + strings.Repeat("    loss.backward()\n    opt.step()\n    opt.zero_grad()\n", 20),
	} {
		found := got(t, "x.py", "import torch\n"+long+"\n"+training)
		if want := fmt.Sprintf("%d R07", strings.Count(long, "\n")+6); !slices.Contains(found, want) {
			t.Errorf("%s: %v, want %s", name, found, want)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestSilence: a comment silences its line, or the next one, for the rules that it names.
func TestSilence(t *testing.T) {
	program := func(before, after string) string {
		return before + "import torch\nfor x in data:\n    loss = model(x)\n    loss.backward()\n    " + after + "\n    opt.zero_grad()\n    kept.append(loss)\n"
	}
	for source, want := range map[string]int{
		program("kept = []\n", "opt.step()"): 1,
		strings.Replace(program("kept = []\n", "opt.step()"), "(loss)\n", "(loss)  # warpline: ok R06\n", 1):               0,
		strings.Replace(program("kept = []\n", "opt.step()"), "(loss)\n", "(loss)  # warpline: ok kept-across-steps\n", 1): 0,
		strings.Replace(program("kept = []\n", "opt.step()"), "(loss)\n", "(loss)  # warpline: ok R07, R13\n", 1):          1,
		strings.Replace(program("kept = []\n", "opt.step()"), "(loss)\n", "(loss)  # warpline: ok\n", 1):                   0,
		strings.Replace(program("kept = []\n", "opt.step()"), "    kept.a", "    # warpline: ok R06\n    kept.a", 1):       0,
	} {
		if found := got(t, "x.py", source); len(found) != want {
			t.Errorf("%d findings, want %d: %v in\n%s", len(found), want, found, source)
		}
	}
}

// TestNotebook: cells are one program; commands of the shell and magics are passed over; places are cells' lines.
func TestNotebook(t *testing.T) {
	found, err := CheckNotebook("n.ipynb", must(os.ReadFile("testdata/training.ipynb")))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0].Rule != "R07" || found[0].Cell != 4 || found[0].Line != 5 || found[0].Finding.Line != "n.ipynb: cell 4, line 5" {
		t.Errorf("%+v", found)
	}
	for bad, says := range map[string]string{
		"":                          "not a notebook",
		"[]":                        "not a notebook",
		`{"cells":3}`:               `JSON with a number at "cells"`,
		"{}":                        "it has no cells",
		`{"worksheets":[]}`:         "it has no cells",
		cellsOf("x = 1", "\ny = ("): "n.ipynb: cell 2, line 2: '(' is not closed",
		strings.Replace(cellsOf("x"), "{", `{"metadata":{"kernelspec":{"language":"R"}},`, 1): "not a notebook in Python: its language is r",
	} {
		if _, err := CheckNotebook("n.ipynb", []byte(bad)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// cellsOf is a notebook of cells with code.
func cellsOf(sources ...string) string {
	var all []map[string]string
	for _, s := range sources {
		all = append(all, map[string]string{"cell_type": "code", "source": s})
	}
	return string(must(json.Marshal(map[string]any{"cells": all})))
}

// TestCells: what is IPython's is passed over wherever it stands, and nothing else is.
func TestCells(t *testing.T) {
	const training = "for x, y in loader:\n    loss = model(x)\n    loss.backward()\n    opt.step()\n"
	for source, want := range map[string]string{
		training:                            "cell 2, line 4",
		"%%time\n" + training:               "cell 2, line 5",
		"\n%%capture out\n" + training:      "cell 2, line 6",
		"%%bash\n" + training:               "",
		"%%writefile train.py\n" + training: "",
		"%time f()\n!pip install \\\n  torch \\\n  numpy\n" + training:                         "cell 2, line 8",
		"out = !ls\nout = %timeit -o f()\n?torch\ntorch.nn??\n" + training:                     "cell 2, line 8",
		"if x:\n    !ls\n" + training:                                                          "cell 2, line 6",
		strings.Replace(training, "model(x)", "model(x  # ok?\n     % y)  # really?", 1):       "cell 2, line 5",
		strings.Replace(training, "    loss.b", "# why?\n    loss.b", 1):                       "cell 2, line 5",
		strings.Replace(training, "    loss.b", "    s = \"\"\"\n!ls\n?\"\"\"\n    loss.b", 1): "cell 2, line 7",
		strings.ReplaceAll("%%time\n%matplotlib inline\n"+training, "\n", "\r\n"):              "cell 2, line 6",
		"x = y != z\nx %= 2\nx = '= !ls'\n" + training:                                         "cell 2, line 7",
	} {
		found, err := CheckNotebook("n.ipynb", []byte(cellsOf("import torch", source)))
		if want == "" && (err != nil || len(found) > 0) || want != "" && (err != nil || len(found) != 1 || found[0].Finding.Line != "n.ipynb: "+want) {
			t.Errorf("%q: %v, want %s: %+v", source, err, want, found)
		}
	}
}

// TestOwn: nothing is found in this repository's programs in Python that nobody knows of.
func TestOwn(t *testing.T) {
	var files []string
	vet.Walk("../..", func(name string) {
		if IsProgram(name) {
			files = append(files, name)
		}
	}, func(err error) { t.Error(err) })
	if len(files) < 10 {
		t.Fatalf("only %d programs", len(files))
	}
	for _, name := range files {
		if strings.Contains(name, "testdata") || strings.Contains(name, filepath.Join("vet", "programs")) {
			continue
		}
		found := must(CheckFile(name))
		if strings.HasSuffix(name, "Wrong.py") { // of the lessons, which show what is wrong
			if len(found) == 0 {
				t.Errorf("%s: nothing is found", name)
			}
			continue
		}
		for _, f := range found {
			if f.Rule == "R38" && strings.HasSuffix(name, "L21.py") {
				continue // the lesson on DataParallel
			}
			t.Errorf("%s: %s %s", f.Finding.Line, f.Rule, f.Title)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, file := range must(filepath.Glob("testdata/*.py")) {
		f.Add(string(must(os.ReadFile(file))))
	}
	f.Add("import torch\nx = x + x\nfor x in x: x.append(x.backward())\nclass A(A):\n def a(a): return a.a()")
	f.Fuzz(func(t *testing.T, source string) {
		found, err := Check("x.py", []byte(source))
		lines := strings.Count(source, "\n") + strings.Count(source, "\r") + 1
		for _, one := range found {
			if err != nil && !errors.Is(err, ErrCutShort) || one.Line < 1 || one.Line > lines {
				t.Errorf("%v: %+v", err, one)
			}
		}
	})
}

func FuzzNotebook(f *testing.F) {
	f.Add(string(must(os.ReadFile("testdata/training.ipynb"))))
	f.Add(cellsOf("%%time\nimport torch\n", "!ls\nfor x in y:\n\tx.backward()\n", "x ="))
	f.Fuzz(func(t *testing.T, data string) {
		found, err := CheckNotebook("n.ipynb", []byte(data))
		for _, one := range found {
			if err != nil && !errors.Is(err, ErrCutShort) || one.Line < 1 || one.Cell < 1 {
				t.Errorf("%v: %+v", err, one)
			}
		}
	})
}

// BenchmarkCheck is for the scripts after threads of forums, each by itself.
func BenchmarkCheck(b *testing.B) {
	var sources [][]byte
	lines := 0
	for _, file := range must(filepath.Glob("testdata/forum/*.py")) {
		sources = append(sources, must(os.ReadFile(file)))
		lines += bytes.Count(sources[len(sources)-1], []byte("\n"))
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, s := range sources {
			must(Check("script.py", s))
		}
	}
	b.ReportMetric(float64(lines)*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
}

// TestCutShort: a program whose walk takes too long says so, and gives what was found until then.
func TestCutShort(t *testing.T) {
	var b strings.Builder
	b.WriteString("import torch\nlosses = []\nfor x, y in loader:\n    opt.zero_grad()\n    loss = model(x)\n    loss.backward()\n    opt.step()\n    losses.append(loss)\n")
	b.WriteString("def f0():\n    g()\n")
	for i := range 7 {
		fmt.Fprintf(&b, "def f%d():\n%s", i+1, strings.Repeat(fmt.Sprintf("    f%d()\n", i), 8))
	}
	b.WriteString("f7()\n")
	found, err := Check("x.py", []byte(b.String()))
	if !errors.Is(err, ErrCutShort) || len(found) != 1 || found[0].Rule != "R06" {
		t.Errorf("%v: %+v", err, found)
	}
	if _, err := Check("x.py", []byte("import torch\nf()\n")); err != nil {
		t.Error(err)
	}
}

// TestMadeOn: what is to be written for a tensor that is made on the host is a call that PyTorch takes: legacy constructors make tensors on the
// host alone, and a call that names its device names it once.
func TestMadeOn(t *testing.T) {
	const program = "import torch\nhost = torch.device('cpu')\nfor x, y in loader:\n    t = %s.to('cuda')\n    loss = model(x.to('cuda'), t)\n    loss.backward()\n    opt.step()\n    opt.zero_grad()\n"
	for made, fix := range map[string]string{
		"torch.zeros(3, 4)":                "torch.zeros(3, 4, device='cuda')",
		"torch.zeros(3, 4, device = host)": "torch.zeros(3, 4, device='cuda')",
		"torch.zeros(3, 4, device=host)":   "torch.zeros(3, 4, device='cuda')",
		"torch.BoolTensor(x.size())":       "torch.empty(x.size(), dtype=torch.bool, device='cuda')",
		"torch.FloatTensor(3, 4)":          "torch.empty(3, 4, device='cuda')",
		"torch.Tensor(*x.shape)":           "",
		"torch.LongTensor(ids)":            "",
	} {
		found := must(Check("x.py", fmt.Appendf(nil, program, made)))
		if fix == "" && len(found) > 0 || fix != "" && (len(found) != 1 || found[0].Fix != fix) {
			t.Errorf("%s: %+v", made, found)
		}
	}
}

// TestFixText: what a fix writes is Python.
func TestFixText(t *testing.T) {
	const training = "import torch\nfor x, y in loader:\n    x = x.pin_memory()\n    x = %s\n    loss = model(x)\n    loss.backward()\n    opt.step()\n    opt.zero_grad()\n    %s\n"
	fixes := func(rule, move, keep string) (all []string) {
		for _, f := range must(Check("x.py", fmt.Appendf(nil, training, move, keep))) {
			if f.Rule == rule {
				all = append(all, f.Fix)
			}
		}
		return all
	}
	for call, want := range map[string]string{
		"x.cuda()": "x.cuda(non_blocking=True)", "x.to(device)": "x.to(device, non_blocking=True)", "x.to(\n\tdevice,\n)": "x.to(device, non_blocking=True)",
		"x.to(device, non_blocking=False)": "x.to(device, non_blocking=True)", "x.to(device=device)": "x.to(device=device, non_blocking=True)",
	} {
		if got := fixes("R14", call, ""); !slices.Equal(got, []string{want}) {
			t.Errorf("%s becomes %q, want %s", call, got, want)
		}
	}
	const each, sum = "keep the value's .detach()", "  # on the device; .item() once, when it is printed"
	for keep, want := range map[string]string{
		"kept.append(loss)": "kept.append(loss.detach())", "kept.append(torch.add(loss, b))": "kept.append(torch.add(loss, b).detach())", "kept.append((loss + b))": "kept.append((loss + b).detach())",
		"kept.append(loss[i, j])": "kept.append(loss[i, j].detach())", "kept.append((loss, b))": each, "kept.append(((loss, b)))": each, "kept.append({'loss': loss})": each,
		"kept.append([loss])": each, "kept.insert(0, loss)": each, "kept[3] = loss": each,
		"total += loss": "total += loss.detach()" + sum, "total += loss*2": "total += (loss*2).detach()" + sum, "total = total + loss": "add the value's .detach()",
	} {
		if got := fixes("R06", "x.cuda()", keep); !slices.Equal(got, []string{want}) {
			t.Errorf("%s becomes %q, want %s", keep, got, want)
		}
	}
}

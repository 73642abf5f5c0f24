package examples

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// programs are those that a new user writes first, each in a folder with its PyTorch form: figures of what they print, with
// the range that they are in however numbers are drawn.
var programs = map[string]struct {
	figure   string // what is printed, with the figure as a group
	from, to float64
}{
	"regression": {`R2 ([0-9.]+)`, 0.9, 1}, // a linear model gets 0.8
	"gru":        {`loss ([0-9.]+)`, 1, 2}, // letters by how often they occur 3.1
	"finetune":   {`([0-9.]+) % after`, 70, 100},
	"vae":        {`loss ([0-9.]+)`, 80, 140},
}

// TestPrograms holds each program's length against that of its PyTorch form, and builds and runs one in eight,
// at least one, with the repository's root as their folder as far as they read.
func TestPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	bin := t.TempDir()
	part := testutil.Some(testutil.NewSpread(t, testutil.Seed(t), 8), slices.Sorted(maps.Keys(programs)), func(name string) string { return name })
	for name, p := range programs {
		t.Run(name, func(t *testing.T) {
			own, torch := lines(t, filepath.Join(name, "main.go")), lines(t, filepath.Join(name, name+".py"))
			if 5*own > 6*torch {
				t.Errorf("%d lines, which is more than 1.2 of PyTorch's %d", own, torch)
			}
			if !slices.Contains(part, name) {
				return
			}
			path := filepath.Join(bin, name+".exe")
			if out, err := exec.Command("go", "build", "-o", path, "./"+name).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			run := exec.Command(path)
			run.Dir = rooted(t)
			out, err := run.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			m := regexp.MustCompile(p.figure).FindSubmatch(out)
			if m == nil {
				t.Fatalf("no %s in %s", p.figure, out)
			}
			if v, err := strconv.ParseFloat(string(m[1]), 64); err != nil || v < p.from || v > p.to {
				t.Errorf("%s: not from %v to %v", out, p.from, p.to)
			}
		})
	}
}

// rooted is a folder with the files that programs read, for them to write in.
func rooted(t *testing.T) string {
	dir := t.TempDir()
	for _, name := range []string{"examples/gru/shakespeare.txt", "train/testdata/cars/cars.csv"} {
		raw, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, raw, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// lines counts those that are neither empty nor comment.
func lines(t *testing.T, path string) (n int) {
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mark, doc := "//", false
	if filepath.Ext(path) == ".py" {
		mark = "#"
	}
	for line := range bytes.Lines(raw) {
		s := strings.TrimSpace(string(line))
		quotes := strings.Count(s, `"""`)
		if !doc && quotes == 0 && s != "" && !strings.HasPrefix(s, mark) {
			n++
		}
		doc = doc != (quotes%2 == 1)
	}
	return n
}

package source

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/torchcall"
)

const root = "../../.."

func table(t *testing.T) *torchcall.Table {
	t.Helper()
	text, err := os.ReadFile("../table.json")
	if err != nil {
		t.Fatal(err)
	}
	table := new(torchcall.Table)
	if err := json.Unmarshal(text, table); err != nil {
		t.Fatal(err)
	}
	return table
}

// TestExamplesCompile compiles every example as the command prints it, each with what makes its values.
func TestExamplesCompile(t *testing.T) {
	source, dir := exampleFile(table(t)), t.TempDir()
	file := filepath.Join(dir, "examples.go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-gcflags=-e", testutil.Overlay(t, map[string]string{"compiled/examples.go": file}), "./compiled").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// exampleFile is a file with a function for each example.
func exampleFile(t *torchcall.Table) string {
	top, body := map[string]bool{}, new(strings.Builder)
	for _, r := range t.Rows {
		for i, shown := range r.Go {
			fmt.Fprintf(body, "//line row/of/%s.go:1\nfunc _() {\n", key(r.PyTorch[0]))
			for _, line := range r.Makes[i] {
				line := t.Lines[line]
				if names, _, ok := strings.Cut(line, " := "); ok && !strings.HasPrefix(line, "type ") && !strings.HasPrefix(line, "func ") {
					body.WriteString(line + "\n" + used(names))
				} else {
					top[line] = true
				}
			}
			if r.Whole != "" {
				shown = r.Whole
			}
			body.WriteString(statement(shown) + "}\n")
		}
	}
	decls := strings.Join(slices.Sorted(maps.Keys(top)), "\n")
	return "package compiled\n\n" + importsOf(decls+body.String()) + decls + "\n" + body.String()
}

// key is a spelling as a file may be called, by which the compiler names a row.
func key(spelling string) string { return regexp.MustCompile(`\W+`).ReplaceAllString(spelling, "_") }

// used are assignments that use variables.
func used(names string) string {
	names = strings.ReplaceAll(names, ", _", "")
	return "_" + strings.Repeat(", _", strings.Count(names, ",")) + " = " + names + "\n"
}

// statement is a spelling as a statement.
func statement(code string) string {
	if e, err := parser.ParseExpr(code); err == nil {
		if _, call := e.(*ast.CallExpr); !call {
			return "_ = " + code + "\n"
		}
		if conversion.MatchString(code) {
			return "_ = " + code + "\n"
		}
		return code + "\n"
	}
	if names, _, ok := strings.Cut(code, " := "); ok && !strings.HasPrefix(code, "for ") {
		return code + "\n" + used(names)
	}
	return code + "\n"
}

// conversion is a call that is none, whose value has to be used.
var conversion = regexp.MustCompile(`^(len|cap|append|min|max|float32|float64|int|nn\.Func|augment\.Transform)\(`)

var packages = map[string]string{
	"filepath": "path/filepath", "log": "log", "maps": "maps", "math": "math", "rand": "math/rand/v2", "slices": "slices", "context": "context", "os": "os", "fmt": "fmt", "runtime": "runtime", "time": "time", "bytes": "bytes",
	"idx": "github.com/warpline-ml/warpline/data/idx", "digits": "github.com/warpline-ml/warpline/data/digits",
	"augment": "github.com/warpline-ml/warpline/data/augment", "table": "github.com/warpline-ml/warpline/data/table",
}

// ours are the packages of examples that are at the root.
var ours = []string{"ckpt", "data", "dtype", "metric", "nn", "optim", "prof", "tensor", "train"}

var qualifier = regexp.MustCompile(`\b([a-z]+)\.[A-Z]`)

func importsOf(code string) string {
	list := map[string]bool{}
	for _, m := range qualifier.FindAllStringSubmatch(code, -1) {
		if p, ok := packages[m[1]]; ok {
			list[p] = true
		} else if slices.Contains(ours, m[1]) {
			list["github.com/warpline-ml/warpline/"+m[1]] = true
		}
	}
	var b strings.Builder
	for _, p := range slices.Sorted(maps.Keys(list)) {
		fmt.Fprintf(&b, "import %q\n", p)
	}
	return b.String()
}

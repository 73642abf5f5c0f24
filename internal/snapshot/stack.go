package snapshot

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/pickle"
)

// Kinds of memory, as calls tell them where the file has no categories.
const (
	kindOptimizer  = "optimizer state"
	kindParameter  = "parameter"
	kindBackward   = "backward"
	kindActivation = "activation"
	kindInput      = "input"
	kindCompiled   = "compiled graph"
	kindOther      = "other"
	kindUnknown    = "before recording"
)

// frame is a call, with what it says of the memory that was made below it.
type frame struct {
	name, file string
	line       int64
	python     bool // or Go: a line that a person wrote
	library    bool
	emptyCache bool
	evaluates  bool
	kind       string
	outer      int // the place of kind in the order of kinds
	rank       int // how well it names a line: see rankOf
}

// stack is what calls say of memory.
type stack struct {
	known      bool   // there are calls
	file       string // of the program, or of the library where no call is of the program
	line       int64
	function   string
	kind       string
	emptyCache bool
	evaluates  string // the function of the program that evaluates a model
}

// books are what is shared by many entries of a file.
type books struct {
	stacks map[*pickle.ReadList]*stack
	none   *stack
	first  []string
}

func newBooks() *books {
	return &books{stacks: map[*pickle.ReadList]*stack{}, none: &stack{kind: kindUnknown}}
}

func (b *books) frame(d *pickle.ReadDict) *frame {
	f := &frame{name: text(d, "name"), file: strings.ReplaceAll(text(d, "filename"), `\`, "/"), line: number(d, "line")}
	f.python = strings.HasSuffix(f.file, ".py") || strings.HasSuffix(f.file, ".go") || strings.HasSuffix(f.file, ".ipynb") || strings.Contains(f.file, "/ipykernel_")
	f.library = isLibrary(f.file, f.name)
	f.emptyCache = strings.Contains(f.name, "emptyCache") || f.name == "empty_cache"
	f.evaluates = f.python && !f.library && evaluates(f.name)
	f.kind = kindOf(f)
	f.outer = slices.Index(order, f.kind)
	f.rank = rankOf(f)
	return f
}

// libraries are parts of paths of what is not the program.
var libraries = []string{"/site-packages/", "/dist-packages/", "/lib/python3", "torchinductor", "/torch/", "<frozen", "<string>", "<eval"}

func isLibrary(file, name string) bool {
	return slices.ContainsFunc(libraries, func(part string) bool { return strings.Contains(file, part) }) ||
		strings.HasPrefix(name, "runtime.") || ownLibrary.MatchString(name)
}

// ownLibrary are the functions of Warpline's that programs call. Its models are programs.
var ownLibrary = regexp.MustCompile(`^github\.com/warpline-ml/warpline/(tensor|nn|optim|train|prof|internal)[./]`)

// evaluates tells functions that run a model without training it, by their names.
func evaluates(name string) bool {
	for _, word := range strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '_' || r == '.' }) {
		switch word {
		case "eval", "evaluate", "evaluation", "validate", "validation", "valid", "val", "predict", "inference":
			return true
		}
	}
	return false
}

// order is that of kinds: what an outer call says of an inner one.
var order = []string{kindOther, kindCompiled, kindActivation, kindInput, kindBackward, kindParameter, kindOptimizer}

// kindOf is the kind of memory that a call makes.
func kindOf(f *frame) string {
	switch {
	case strings.Contains(f.file, "/optim") && f.python || strings.HasSuffix(f.name, "Optimizer.step"):
		return kindOptimizer
	case f.name == "_apply" || f.name == "reset_parameters" || f.name == "load_state_dict":
		return kindParameter
	case strings.Contains(f.name, "autograd::Engine") || strings.Contains(f.name, "autograd::python::PythonEngine") || f.name == "backward" || strings.HasSuffix(f.name, ".Backward"):
		return kindBackward
	case strings.Contains(f.file, "/utils/data/") || f.name == "pin_memory":
		return kindInput
	case f.name == "forward" || f.name == "_call_impl" || strings.HasSuffix(f.name, ".Forward"):
		return kindActivation
	case strings.Contains(f.file, "torchinductor"):
		return kindCompiled
	}
	return kindOther
}

// stack is what a list of calls says, innermost first.
func (b *books) stack(v any) *stack {
	list, ok := v.(*pickle.ReadList)
	if !ok || len(list.Items) == 0 {
		return b.none
	}
	if s := b.stacks[list]; s != nil {
		return s
	}
	s := &stack{known: true, kind: kindOther}
	chosen, outer := &frame{}, 0
	for _, x := range list.Items {
		f, ok := x.(*frame)
		if !ok {
			continue
		}
		s.emptyCache = s.emptyCache || f.emptyCache
		if f.outer > outer {
			s.kind, outer = f.kind, f.outer
		}
		if f.evaluates {
			s.evaluates = f.name
		}
		if f.rank > chosen.rank {
			chosen = f
		}
	}
	s.file, s.line, s.function = chosen.file, chosen.line, chosen.name
	b.stacks[list] = s
	return s
}

// rankOf is how well a call names the line that is to blame: the program's own innermost one is best, then a library's, then
// an operation of native code.
func rankOf(f *frame) int {
	switch {
	case f.python && !f.library:
		return 4
	case f.python:
		return 3
	case strings.HasPrefix(f.name, "at::_ops::"):
		return 2
	default:
		return 1
	}
}

// where is the line for people: the file without its folders.
func (s *stack) where() string {
	switch {
	case !s.known:
		return kindUnknown
	case s.line > 0:
		return path.Base(s.file) + ":" + strconv.FormatInt(s.line, 10)
	case s.function != "":
		return strings.TrimPrefix(s.function, "at::_ops::")
	}
	return "native code"
}

// Package imports keeps the direction of imports between the folders of the house.
package imports

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/warpline-ml/warpline/"

// rules say what may import what: in "a, b < c" c may import a and b, and all that they may import. A package that no
// rule names may import nothing of the module.
//
// This is a statement of policy. Do not relax it to make a build pass: when a rule is in the way, move the code or
// write down in docs/why.md why the house changes.
const rules = `
	NONE
	< dtype, internal/rng, internal/render, internal/callsite, internal/durable, internal/advice, internal/hostclock,
	  internal/claim, internal/pickle, internal/hostmem, internal/cpufeat, internal/cards, internal/testutil, internal/ptx, internal/ledger, internal/dl, internal/presence, internal/cuda/driver, internal/cuda/kernels,
	  internal/fatbin, internal/fatbin/fatbintest;

	NONE < internal/sorting;
	internal/sorting < cmd/warpline, data, internal/bench, internal/cuda, internal/cuda/simcuda, internal/device,
	  internal/diagnose, internal/doctor, internal/estimate, internal/fatbin, internal/finding, internal/gpusim, internal/gpusim/check,
	  internal/joblog, internal/kineto, internal/lab, internal/literal, internal/litmus, internal/machinefile, internal/monitor, internal/nvml, internal/onepage,
	  internal/oom, internal/presence, internal/pyenv, internal/simexec, internal/simrun, internal/snapshot,
	  internal/torchcall, internal/torchcall/source, internal/vetpy, metric, model, nn, plan, prof, tensor, train;

	NONE < internal/numbers;
	internal/numbers < internal/cuda, internal/gpusim, internal/gpusim/compile, internal/gpusim/warp, internal/ref;

	internal/claim < internal/safetensors, internal/npy, internal/idxfile;
	dtype < internal/ir;
	internal/ir < internal/autograd, internal/lower;
	internal/ir, dtype, internal/rng < internal/ref;

	internal/ir, internal/callsite, internal/render, internal/hostmem, internal/cpufeat, internal/hostclock, internal/advice < internal/device;
	internal/hostmem, internal/cpufeat < internal/par;
	internal/par, internal/cpufeat, internal/hostmem, internal/rng, dtype < internal/cpu/kernels;
	internal/cpufeat < internal/rng;
	internal/device, internal/cpu/kernels, internal/rng < internal/cpu;
	internal/device, internal/cards < internal/null;
	internal/render < internal/oom;
	internal/cards, internal/ptx, internal/render < internal/estimate;
	internal/cards, internal/advice < internal/formula;
	internal/formula < cmd/warpline;

	internal/ptx < internal/gpusim/simt;
	internal/hostmem, internal/gpusim/simt < internal/gpusim/memory;
	internal/gpusim/simt < internal/gpusim/arith, internal/gpusim/flow, internal/gpusim/oracle;
	internal/gpusim/memory < internal/gpusim/check;
	internal/gpusim/memory, internal/cpufeat < internal/gpusim/lanes;
	internal/gpusim/simt < internal/gpusim/tensormap;
	internal/gpusim/arith, internal/gpusim/check, internal/gpusim/flow, internal/gpusim/lanes, internal/gpusim/tensormap < internal/gpusim/warp;
	internal/gpusim/warp, internal/cards < internal/gpusim/compile;
	internal/gpusim/compile, internal/par, internal/estimate < internal/gpusim;
	internal/ptx, internal/cuda/kernels, internal/durable, internal/ir < internal/cuda/kernels/gen;
	internal/device, internal/cuda/driver, internal/cuda/kernels, internal/rng, internal/advice < internal/cuda;
	internal/dl, internal/advice < internal/nvml;
	internal/dl, internal/advice, internal/hostmem < internal/nvtx;
	internal/nvtx, internal/testutil/cc < internal/nvtx/nvtxtest;
	internal/dl, internal/cuda/driver, internal/hostmem, internal/advice < internal/cuda/libcuda;
	internal/gpusim, internal/cuda/driver < internal/cuda/simcuda;
	internal/cuda/driver, internal/hostmem < internal/cuda/cabi;
	internal/dl < internal/testutil/cc;
	internal/cuda/libcuda, internal/dl, internal/testutil/cc < internal/cuda/shimtest;
	internal/gpusim < internal/gpusim/mutate;
	internal/gpusim/mutate, internal/cuda, internal/cuda/simcuda < bench/oracle;
	internal/gpusim, dtype, internal/npy, internal/render, internal/durable, internal/advice, internal/device < internal/simrun;
	internal/simrun < internal/simdebug;
	NONE < internal/litmus;
	internal/litmus, internal/simdebug < cmd/warpline;
	internal/cuda/cabi, internal/cuda/simcuda, internal/simrun < internal/simexec;

	internal/ref, internal/device, internal/lower, internal/autograd, internal/hostmem < internal/conform;
	internal/conform, internal/testutil, internal/cpufeat, internal/par < internal/device/devicetest;
	internal/ref, internal/autograd, internal/lower < internal/lower/eager;
	internal/safetensors, internal/testutil, tensor < internal/testutil/golden;

	internal/cpu, internal/null, internal/cuda, internal/cuda/libcuda, internal/cuda/simcuda < internal/engines;
	internal/device < tensor/internal/heap;
	NONE < tensor/internal/arena;
	tensor/internal/arena < tensor;
	tensor/internal/heap, internal/engines, internal/autograd, internal/lower, internal/render, internal/rng, internal/hostmem, internal/presence, internal/oom < tensor;
	tensor, internal/cards, internal/advice < internal/machine;
	tensor < nn;
	tensor, internal/cards < kernel;
	kernel < examples/kernels;
	internal/render < internal/finding;
	internal/finding, internal/pickle, internal/cards < internal/snapshot;
	NONE < internal/xid, internal/lzma, internal/slab;
	internal/slab < internal/ptx, internal/gpusim/compile;
	train, internal/cards, internal/cuda, internal/cuda/simcuda, internal/npy < internal/traintest;
	internal/lzma < internal/tables, internal/cuda/kernels/gen;
	internal/tables, internal/durable, internal/advice < internal/sources;
	internal/sources < internal/exercise, internal/lesson, internal/cuda/kernels/gen;
	internal/tables < internal/exercise, internal/lab, internal/lesson, internal/live, internal/simexec, internal/simrun, internal/vet, internal/cuda/kernels, internal/ptx, internal/counts, internal/torchcall, internal/ledger, internal/cuda/kernels/gen;
	internal/drivers, internal/finding, internal/nvml, internal/xid < internal/machinefile;
	NONE < internal/literal;
	internal/drivers, internal/finding, internal/literal, internal/xid < internal/errortext;
	internal/errortext, internal/pickle < internal/joblog;
	internal/joblog, internal/kineto, internal/machinefile, internal/snapshot, internal/advice, internal/durable < internal/diagnose;
	internal/finding, internal/render < internal/kineto;
	internal/kineto < bench/hta;
	internal/kineto/tracetest < bench/tracegen;
	internal/fatbin < internal/pyenv;
	tensor, nn, internal/cards, internal/finding, internal/durable, internal/advice, internal/pickle, internal/estimate, internal/nvtx < prof;
	internal/device, internal/estimate < internal/counts;
	prof, internal/counts < plan;
	internal/counts, internal/cuda/simcuda, train < bench/dryrun;
	nn < optim, model;
	tensor, internal/durable < data;
	data < data/tokens, data/text, data/npz, data/idx, data/digits, data/table, data/augment, data/tickets, data/shapes;
	internal/advice < data/table;
	internal/idxfile < data/idx;
	internal/npy < data/npz;
	internal/hostmem < data/tokens;
	data/tokens < data/text;
	internal/rng < data/digits, data/tickets, data/shapes, data/text, data/tokens, model;
	optim, internal/advice < internal/recipe;
	metric, model, data/tickets, data/shapes < internal/zoo;
	data/tokens, data/npz, data/idx, data/digits, data/tickets, data/shapes, internal/advice < internal/dataset;
	nn, data < metric;
	NONE < internal/tfevents;
	internal/tfevents < train;
	nn, optim, data, internal/safetensors, internal/durable, internal/hostmem < ckpt;
	data/table, data/text, metric, ckpt, internal/dataset, model, optim, internal/machine, internal/recipe, internal/zoo, prof, plan < train;
	internal/conform, internal/render, internal/safetensors, internal/durable, internal/ledger, model, optim < internal/check;
	internal/cpu/kernels, internal/estimate, internal/machine, model, optim, data/digits, data/tokens < internal/bench;
	internal/finding, internal/render, internal/advice, internal/durable, internal/cards, internal/pyenv, internal/drivers, internal/fatbin/fatbintest, internal/xid < internal/doctor;
	NONE < internal/drivers;
	NONE < internal/nvkernel;
	internal/doctor, internal/nvkernel, internal/nvml, internal/cuda/driver, internal/cuda/libcuda < internal/doctor/probe;
	internal/nvml, internal/presence, internal/render < internal/monitor;
	internal/advice < internal/web;
	internal/web, train < internal/live;
	prof, optim, model, data/digits, internal/monitor, internal/machine, internal/diagnose, internal/doctor < internal/onepage;
	internal/onepage < cmd/warpline;
	tensor, internal/estimate < internal/explore;
	internal/explore < cmd/warpline;
	NONE < examples/sim;
	internal/web, internal/cards, internal/formula, internal/simdebug, internal/diagnose, examples/sim < internal/lab;
	internal/lab < cmd/warpline;
	internal/monitor, internal/live, train, internal/simrun, internal/simexec, internal/check, internal/bench, internal/diagnose < cmd/warpline;
	internal/doctor/probe < cmd/warpline;
	NONE < internal/pysyntax;
	internal/finding < internal/vet;
	internal/vet < internal/vet/vettest;
	internal/advice, internal/pysyntax, internal/vet < internal/vetpy;
	internal/advice, internal/sorting, internal/vet < internal/vetgo;
	internal/pysyntax < bench/python;
	internal/vetpy, internal/vetgo < internal/vetinput;
	internal/vetinput < cmd/warpline;
	internal/advice < internal/torchcall;
	internal/torchcall < internal/torchcall/source, cmd/warpline;
	internal/torchcall/source < internal/torchcall/gen, cmd/warpline;

	data/digits, metric, optim, model, ckpt < examples, examples/pytorch, examples/digits;
	data/table, metric, optim, train < examples/regression;
	data/text, metric, optim, train < examples/gru;
	data/digits, metric, optim, train < examples/vae;
	data/digits, metric, optim < examples/finetune;
	data/tickets, metric, optim, plan < examples/lessons;
	internal/simrun, internal/npy, internal/durable, internal/advice < internal/exercise;
	examples/lessons, internal/exercise, internal/durable, internal/advice, internal/cards, internal/render, internal/web < internal/lesson;
	internal/lesson < cmd/warpline;
	nn < bench/pytorch/compare;
	NONE < bench/peer, internal/addanop, internal/kineto/tracetest;
	internal/ptx < bench/ptx;
	internal/cuda/kernels, internal/cuda/simcuda, train < bench/kernels;
	internal/bench, bench/peer < bench/cpu;
	internal/simrun, internal/cuda/simcuda < bench/clock;
	prof, optim, model < bench/trace, bench/memory;
	prof, optim, model, bench/peer < bench/overhead;
	optim, internal/recipe, bench/peer < bench/optimizers;
	train, bench/peer < bench/levers;
`

// unsafeIn are the only packages that may import unsafe.
var unsafeIn = []string{"internal/cpu", "internal/cpu/kernels", "internal/cuda", "internal/cuda/libcuda", "internal/cuda/simcuda", "internal/cuda/shimtest", "internal/dl", "internal/nvml", "internal/nvkernel", "internal/nvtx", "internal/simexec", "internal/device", "internal/gpusim/check", "internal/gpusim/simt", "internal/gpusim/lanes", "internal/gpusim/warp", "internal/gpusim/compile", "internal/hostmem", "internal/callsite"}

// never lists imports that a package must not have at all.
var never = map[string][]string{
	"internal/ir":       {"os", "net", "unsafe"},
	"internal/autograd": {"os", "net", "unsafe"},
	"internal/lower":    {"os", "net", "unsafe"},
	"internal/ptx":      {"os", "net", "unsafe"},
	"internal/estimate": {"os", "net", "unsafe"},
	"internal/formula":  {"os", "net", "unsafe"},
}

// only lists outside modules and the packages that may import them; nobody else may.
var only = map[string][]string{
	"golang.org/x/sys":             {"internal/hostmem", "internal/cpufeat", "internal/durable", "internal/cpu/kernels", "internal/par", "internal/doctor/probe", "internal/simexec", "cmd/warpline"},
	"github.com/spf13":             {"cmd/warpline"}, // cobra and its flags
	"charm.land":                   {"cmd/warpline"}, // bubbletea
	"github.com/ebitengine/purego": {"internal/dl"},
	"github.com/google/pprof":      {"prof"},
	"golang.org/x/tools":           {"internal/vetgo"}, // go/analysis
}

// behind are the packages that internal/engines hides: what stands above it knows devices, not engines. Besides
// internal/engines and what it stands on, only measurements (bench) and the packages of direct may import them.
var behind = []string{"internal/cpu", "internal/cpu/kernels", "internal/null", "internal/cuda", "internal/cuda/driver", "internal/cuda/kernels",
	"internal/cuda/libcuda", "internal/cuda/simcuda", "internal/cuda/cabi", "internal/gpusim", "internal/gpusim/simt", "internal/gpusim/memory",
	"internal/gpusim/arith", "internal/gpusim/flow", "internal/gpusim/check", "internal/gpusim/lanes", "internal/gpusim/warp", "internal/gpusim/compile", "internal/ptx", "internal/dl"}

// direct are the packages that import some of behind all the same. The first group is about an engine itself. Those of
// the second ask an error of a device what it is; they go when package device can say of an error that the device is out
// of use since (driver.Result.Sticky), that the driver is too old for a module (driver.UnsupportedPTXVersion), and what to
// do about it (advice.Error in place of *libcuda.Error and *driver.Error).
var direct = map[string][]string{
	"internal/bench":            {"internal/cpu/kernels"},
	"internal/cuda/kernels/gen": {"internal/ptx", "internal/cuda/kernels"},
	"internal/cuda/shimtest":    {"internal/cuda/driver", "internal/dl"},
	"internal/gpusim/mutate":    {"internal/gpusim", "internal/ptx"},
	"internal/gpusim/oracle":    {"internal/gpusim/simt", "internal/ptx"},
	"internal/traintest":        {"internal/cuda", "internal/cuda/simcuda"},
	"internal/estimate":         {"internal/ptx"},
	"internal/counts":           {"internal/ptx"},
	"internal/testutil/cc":      {"internal/dl"},
	"internal/nvml":             {"internal/dl"},
	"internal/nvtx":             {"internal/dl"},
	"internal/nvtx/nvtxtest":    {"internal/dl"},
	"internal/simrun":           {"internal/gpusim", "internal/ptx"},
	"internal/simdebug":         {"internal/gpusim", "internal/gpusim/flow", "internal/gpusim/memory", "internal/gpusim/simt", "internal/gpusim/warp", "internal/ptx"}, // what there is to see of a launch
	"kernel":                    {"internal/ptx"},
	"internal/cuda/cabi":        {"internal/cuda/driver"},
	"internal/simexec":          {"internal/cuda/cabi", "internal/cuda/driver", "internal/cuda/simcuda", "internal/gpusim"},

	"internal/doctor/probe": {"internal/cuda/driver", "internal/cuda/libcuda"},

	"internal/check":   {"internal/cuda/driver"},
	"internal/machine": {"internal/cuda/driver", "internal/cuda/libcuda"},
}

// forTests may be imported by test files only.
var forTests = []string{"internal/testutil", "internal/testutil/golden", "internal/testutil/cc", "internal/device/devicetest", "internal/lower/eager", "internal/cuda/shimtest", "internal/nvtx/nvtxtest", "internal/gpusim/oracle", "internal/vet/vettest", "internal/traintest"}

type pkg struct {
	ImportPath string
	Standard   bool
	Imports    []string
}

func list(t *testing.T) []pkg {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %s", exit.Stderr)
		}
		t.Fatal(err)
	}
	var pkgs []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

// parse turns the rules into the direct edges of each package.
func parse(t *testing.T) map[string][]string {
	edges := map[string][]string{}
	for _, rule := range strings.Split(rules, ";") {
		if rule = strings.TrimSpace(rule); rule == "" {
			continue
		}
		low, high, ok := strings.Cut(rule, "<")
		if !ok {
			t.Fatalf("rule %q has no <", rule)
		}
		for _, h := range names(high) {
			edges[h] = append(edges[h], names(low)...)
		}
	}
	return edges
}

func names(list string) []string {
	var out []string
	for _, n := range strings.Split(list, ",") {
		out = append(out, strings.TrimSpace(n))
	}
	return out
}

// reach is all that p may import.
func reach(edges map[string][]string, p string, seen map[string]bool) map[string]bool {
	for _, q := range edges[p] {
		if !seen[q] {
			seen[q] = true
			reach(edges, q, seen)
		}
	}
	return seen
}

func TestImports(t *testing.T) {
	edges := parse(t)
	for p := range edges {
		if reach(edges, p, map[string]bool{})[p] {
			t.Fatalf("the rules let %s import itself", p)
		}
	}
	pkgs := list(t)
	if len(pkgs) < 20 {
		t.Fatalf("go list found %d packages", len(pkgs))
	}
	below := reach(edges, "internal/engines", map[string]bool{"internal/engines": true})
	for _, p := range pkgs {
		name := strings.TrimPrefix(p.ImportPath, module)
		if !below[name] && !strings.HasPrefix(name, "bench/") {
			checkDirect(t, name, p.Imports)
		}
		allowed := reach(edges, name, map[string]bool{})
		for _, imp := range p.Imports {
			check(t, name, imp, allowed)
		}
	}
}

func check(t *testing.T, name, imp string, allowed map[string]bool) {
	own, inside := strings.CutPrefix(imp, module)
	switch {
	case inside && !allowed[own]:
		t.Errorf("%s imports %s, which no rule allows", name, own)
	case inside && slices.Contains(forTests, own) && !slices.Contains(forTests, name):
		t.Errorf("%s imports %s outside of its tests", name, own)
	case imp == "unsafe" && !slices.Contains(unsafeIn, name):
		t.Errorf("%s imports unsafe", name)
	case !inside && strings.Contains(strings.Split(imp, "/")[0], "."):
		checkOutside(t, name, imp)
	}
	for _, bad := range never[name] {
		if imp == bad || strings.HasPrefix(imp, bad+"/") {
			t.Errorf("%s imports %s; it must stay pure", name, imp)
		}
	}
}

func checkOutside(t *testing.T, name, imp string) {
	for prefix, users := range only {
		if strings.HasPrefix(imp, prefix) {
			if !slices.Contains(users, name) {
				t.Errorf("%s imports %s, which only %v may", name, imp, users)
			}
			return
		}
	}
	t.Errorf("%s imports %s, a module that no rule names", name, imp)
}

// checkDirect compares the engines' packages that a package imports with those that direct lets it.
func checkDirect(t *testing.T, name string, imports []string) {
	for _, p := range behind {
		switch has, may := slices.Contains(imports, module+p), slices.Contains(direct[name], p); {
		case has && !may:
			t.Errorf("%s imports %s, which internal/engines hides", name, p)
		case !has && may:
			t.Errorf("%s need not be let import %s", name, p)
		}
	}
}

// The tables name nothing that is not there: a stale entry is a door left open.
func TestTablesAreFresh(t *testing.T) {
	here := map[string]bool{"NONE": true}
	for _, p := range list(t) {
		here[strings.TrimPrefix(p.ImportPath, module)] = true
	}
	named := slices.Concat(unsafeIn, forTests, behind, slices.Collect(maps.Keys(never)), slices.Collect(maps.Keys(direct)))
	for p, low := range parse(t) {
		named = append(append(named, p), low...)
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for prefix, users := range only {
		named = append(named, users...)
		if !strings.Contains(string(mod), "\t"+prefix) {
			t.Errorf("go.mod requires nothing of %s", prefix)
		}
	}
	for _, p := range named {
		if !here[p] {
			t.Errorf("there is no package %s", p)
		}
	}
}

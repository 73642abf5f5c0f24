package kernels_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/cuda"
	"github.com/warpline-ml/warpline/internal/cuda/kernels"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/ptx"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// gets is the targets whose modules a card gets, by compute capability, of a library with the base and of one with all
// targets. None is a card that is refused.
var gets = map[[2]int]struct{ base, all string }{
	{7, 0}:  {"", ""},
	{7, 5}:  {"", "sm_75"}, // with those of the base that stand for it
	{8, 0}:  {"sm_80", "sm_80"},
	{8, 6}:  {"sm_80", "sm_80"},
	{8, 9}:  {"sm_80", "sm_80"},
	{9, 0}:  {"sm_80", "sm_90a sm_80"},
	{10, 0}: {"sm_80", "sm_80"}, // sm_90a is for 9.0 alone
	{12, 0}: {"sm_80", "sm_80"},
}

// TestSelection walks all cards.
func TestSelection(t *testing.T) {
	index, err := os.ReadFile("kernels.json")
	if err != nil {
		t.Fatal(err)
	}
	base, err := kernels.Open(fstest.MapFS{"kernels.json": {Data: index}, "ptx/sm_80/x": {}})
	if err != nil {
		t.Fatal(err)
	}
	all := library(t)
	for _, c := range cards.All {
		want, ok := gets[c.Compute]
		if !ok {
			t.Errorf("nothing is said of %s, of compute capability %v", c.Name, c.Compute)
		}
		selected(t, base, c, want.base)
		selected(t, all, c, want.all)
	}
	if got := cuda.Oldest; gets[got].all == "" || slices.ContainsFunc(cards.All, func(c cards.Card) bool {
		return slices.Compare(c.Compute[:], got[:]) < 0 && gets[c.Compute].all != ""
	}) {
		t.Errorf("the oldest capability is said to be %v", got)
	}
}

// selected compares what a card gets: each module once, of the first target that has it.
func selected(t *testing.T, l *kernels.Library, c cards.Card, want string) {
	t.Helper()
	set, err := l.For(c.Compute)
	if want == "" {
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("not compiled for compute capability %d.%d", c.Compute[0], c.Compute[1])) {
			t.Errorf("%s: error %v", c.Name, err)
		}
		return
	}
	if err != nil {
		t.Errorf("%s: %v", c.Name, err)
		return
	}
	if got := strings.Join(set.Targets, " "); got != want {
		t.Errorf("%s gets %q, want %q", c.Name, got, want)
	}
	from := map[string]string{}
	for _, target := range slices.Backward(strings.Fields(want)) {
		for _, m := range l.Modules() {
			if m.Target == target || target == kernels.Older && m.Target == kernels.Base && !m.Later {
				from[m.Name] = target
			}
		}
	}
	for _, m := range set.Modules() {
		if from[m.Name] != m.Target {
			t.Errorf("%s gets %s of %s, want that of %s", c.Name, m.Name, m.Target, from[m.Name])
		}
		delete(from, m.Name)
		for _, k := range m.Kernels {
			if got, ok := set.Find(k.Name); !ok || got.Module != m {
				t.Errorf("%s does not find %s in %s", c.Name, k.Name, m.Path(""))
			}
		}
	}
	if len(from) > 0 {
		t.Errorf("%s does not get %v", c.Name, slices.Sorted(maps.Keys(from)))
	}
	if same, err := l.For(c.Compute); err != nil || same != set {
		t.Errorf("%s gets another set the second time, error %v", c.Name, err)
	}
}

// TestOlder: each module that older cards need has a form for them that holds nothing that they lack: the base's where that
// is one, else one of its own. Those that they do without hold what they lack.
func TestOlder(t *testing.T) {
	l := library(t)
	set, err := l.For(cuda.Oldest)
	if err != nil {
		t.Fatal(err)
	}
	form := map[string]*kernels.Module{}
	for _, m := range set.Modules() {
		form[m.Name] = m
	}
	parse := func(text []byte, err error) *ptx.Module {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		m, err := ptx.Parse(string(text))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	own, later := map[string]bool{}, 0
	for _, m := range l.Modules() {
		if m.Target == kernels.Older {
			own[m.Name] = true
			continue
		}
		if m.Target != kernels.Base {
			continue
		}
		text, err := m.PTX()
		stands := ptx.Check(parse(kernels.Retarget(text), err)) == nil
		f := form[m.Name]
		switch {
		case m.Later:
			if later++; stands || f != nil {
				t.Errorf("%s: an older card has use for it", m.Path(".ptx"))
			}
			continue
		case f == nil:
			t.Errorf("%s: older cards have no form of it", m.Path(".ptx"))
			continue
		case stands == own[m.Name]:
			t.Errorf("%s: the base's stands for it: %v, it has one of its own: %v", f.Path(".ptx"), stands, own[m.Name])
		}
		older := parse(f.PTX())
		if older.Target.String() != kernels.Older {
			t.Errorf("%s is for %v", f.Path(".ptx"), older.Target)
		}
		for _, e := range ptx.Check(older) {
			t.Errorf("%s: %v", f.Path(".ptx"), e)
		}
		lines, err := f.Lines()
		if err == nil {
			err = ptx.AddLines(older, string(lines))
		}
		if err != nil {
			t.Errorf("%s: %v", f.Path(".lines"), err)
		}
	}
	t.Logf("%d modules: %d of their own, %d that older cards do without", len(form), len(own), later)
	if len(own) == 0 || later == 0 {
		t.Error("nothing is told apart")
	}
}

// TestOlderTarget: cards below the base are served from the base's modules and those of their own, and no others.
func TestOlderTarget(t *testing.T) {
	entry := func(target, module string) string {
		return fmt.Sprintf(`{"Target": %q, "Name": %q, "Kernels": [{"Name": %q, "Instructions": {}}]}`, target, module, "k"+module)
	}
	open := func(modules ...string) *kernels.Library {
		t.Helper()
		l, err := kernels.Open(fstest.MapFS{"ptx/sm_75/x": {}, "ptx/sm_80/x": {}, "kernels.json": {Data: []byte(
			`{"Flags": {"sm_75": [], "sm_80": [], "sm_90a": []}, "Modules": [` + strings.Join(modules, ",") + `]}`)}})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	turing := [2]int{7, 5}
	whole := open(entry("sm_75", "a"), entry("sm_80", "a"), entry("sm_80", "b"), entry("sm_90a", "a"))
	for compute, want := range map[[2]int]string{turing: "sm_75", {8, 0}: "sm_80", {9, 0}: "sm_80"} { // there are no files of sm_90a
		if set, err := whole.For(compute); err != nil || strings.Join(set.Targets, " ") != want {
			t.Errorf("%v: %v, error %v", compute, set, err)
		}
	}
	if _, err := whole.For([2]int{7, 0}); err == nil {
		t.Error("7.0 gets modules for 7.5")
	}
	later := open(entry("sm_75", "a"), entry("sm_80", "a"), strings.Replace(entry("sm_80", "b"), `"Name"`, `"Later": true, "Name"`, 1))
	if set, err := later.For(turing); err != nil || len(set.Modules()) != 1 {
		t.Errorf("with a module that they do without: %v, error %v", set, err)
	}
	if _, err := kernels.Open(fstest.MapFS{"kernels.json": {Data: []byte("<<<<<<< HEAD\n{")}}); err == nil {
		t.Error("an index amid a merge is read")
	}
}

// TestTargets: a module for a target has what the base's has, and a simulated card of that target gets from it the same
// bits. The data are random.
func TestTargets(t *testing.T) {
	seed := testutil.Seed(t)
	l := library(t)
	base := map[string]*kernels.Module{}
	for _, m := range l.Modules() {
		if m.Target == kernels.Base {
			base[m.Name] = m
		}
	}
	cardOf := map[string][2]int{"sm_75": {7, 5}, kernels.Base: {8, 0}, "sm_90a": {9, 0}}
	tried := map[string]bool{}
	older, err := l.For(cuda.Oldest)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range append(l.Modules(), older.Modules()...) {
		if m.Target == kernels.Base {
			continue
		}
		of := base[m.Name]
		if of == nil || len(of.Kernels) != len(m.Kernels) {
			t.Errorf("%s: the base has other kernels", m.Path(".ptx"))
			continue
		}
		for i, k := range m.Kernels {
			b := of.Kernels[i]
			if k.Name != b.Name || !reflect.DeepEqual(k.Params, b.Params) || k.MaxThreads != b.MaxThreads {
				t.Errorf("%s: kernel %s is not called as the base's %s", m.Path(".ptx"), k.Name, b.Name)
			}
		}
		if m.Name == "softmax_f32" {
			tried[m.Target] = true
			want := softmax(t, of, cardOf[kernels.Base], seed)
			if got := softmax(t, m, cardOf[m.Target], seed); !slices.Equal(got, want) {
				t.Errorf("%s gives other bits than the base's", m.Path(".ptx"))
			}
		}
	}
	if len(tried) != len(cardOf)-1 {
		t.Errorf("tried %v", tried)
	}
}

// softmax runs softmax_warp_f32 over 37 rows of 129 on a card of a compute capability, under all checks.
func softmax(t *testing.T, m *kernels.Module, compute [2]int, seed uint64) []byte {
	t.Helper()
	text, err := m.PTX()
	if err != nil {
		t.Fatal(err)
	}
	module, err := ptx.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	const rows, cols = 37, 129
	d := gpusim.NewDevice(gpusim.NewCard("a card", 1<<30, 10, compute), true)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", m.Path(".ptx"), err)
		}
	}
	p, err := d.Load(module)
	must(err)
	y, err := d.Alloc(4*rows*cols, "")
	must(err)
	x, err := d.Alloc(4*rows*cols, "")
	must(err)
	r := rand.New(rand.NewPCG(seed, 1))
	var data []byte
	for range rows * cols {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(4*r.NormFloat64())))
	}
	must(d.Write(x, data))
	params := binary.LittleEndian.AppendUint64(nil, y)
	params = binary.LittleEndian.AppendUint64(params, x)
	params = binary.LittleEndian.AppendUint64(params, rows)
	params = binary.LittleEndian.AppendUint32(params, cols)
	rep, err := d.Launch(p.Kernel("softmax_warp_f32"), [3]int{2, 1, 1}, [3]int{256, 1, 1}, 0, params, gpusim.Options{Checks: gpusim.AllChecks})
	must(err)
	for _, f := range rep.Findings {
		t.Errorf("%s: %v", m.Path(".ptx"), f)
	}
	must(d.Read(data, y))
	sum := 0.0
	for i := range cols {
		sum += float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
	}
	if math.Abs(sum-1) > 1e-5 {
		t.Errorf("%s: the first row sums to %v", m.Path(".ptx"), sum)
	}
	return data
}

package libcuda_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/libcuda"
	"github.com/warpline-ml/warpline/internal/cuda/shimtest"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// open opens the library at path.
func open(t testing.TB, path string) (*driver.API, *libcuda.Source) {
	t.Helper()
	t.Setenv(libcuda.PathEnv, path)
	api, src, err := libcuda.Open()
	if err != nil {
		t.Fatal(err)
	}
	return api, src
}

// simulatorOnly are the functions of the table that no library has.
var simulatorOnly = []string{"Annotate", "Assembled", "EventTime", "Explain", "HostTime", "Parameters", "TensorMapEncodeIm2col", "TensorMapEncodeTiled", "TensorMapReplaceAddress"}

// functions are the names of the others.
func functions() []string {
	var names []string
	for f := range reflect.TypeFor[driver.API]().Fields() {
		if f.Type.Kind() == reflect.Func && !slices.Contains(simulatorOnly, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

// fake is a table that answers with random values and remembers the last call.
type fake struct {
	*rand.Rand
	name    string
	args    []any
	results []any
	result  driver.Result // to be answered
	nodes   int           // in each list of the call
}

// api makes the table.
func (f *fake) api() *driver.API {
	a := new(driver.API)
	v := reflect.ValueOf(a).Elem()
	for _, name := range functions() {
		field := v.FieldByName(name)
		field.Set(reflect.MakeFunc(field.Type(), func(in []reflect.Value) []reflect.Value {
			return f.answer(name, field.Type(), in)
		}))
	}
	return a
}

func (f *fake) answer(name string, typ reflect.Type, in []reflect.Value) []reflect.Value {
	deep(f.IntN(64)) // moves the stack of the caller, under the library
	f.name, f.args, f.results = name, plain(in), nil
	out := make([]reflect.Value, typ.NumOut())
	for i := range out {
		out[i] = f.value(name, typ.Out(i), true)
	}
	f.results = plain(out)
	return out
}

// deep uses n KiB of stack.
func deep(n int) byte {
	var a [1024]byte
	if n == 0 {
		return 0
	}
	a[n] = deep(n - 1)
	return a[n/2]
}

// plain are the values, copied where they share memory.
func plain(in []reflect.Value) []any {
	var out []any
	for _, v := range in {
		switch x := v.Interface().(type) {
		case []byte:
			out = append(out, string(x))
		case []driver.GraphNode:
			out = append(out, listed(x))
		case *driver.LaunchConfig:
			out = append(out, *x)
		case *driver.KernelNode:
			out = append(out, *x, string(x.Params))
			out[len(out)-2] = driver.KernelNode{Func: x.Func, Grid: x.Grid, Block: x.Block, Shared: x.Shared}
		case *driver.CopyNode:
			out = append(out, *x)
		case *driver.FillNode:
			out = append(out, *x)
		case driver.CaptureInfo:
			out = append(out, listed(x.Dependencies))
			x.Dependencies = nil
			out = append(out, x)
		default:
			out = append(out, x)
		}
	}
	return out
}

// listed is a list of nodes as a text, that of no node for an empty list as for nil.
func listed(nodes []driver.GraphNode) string {
	var b strings.Builder
	for _, n := range nodes {
		fmt.Fprintf(&b, "%#x ", uintptr(n))
	}
	return b.String()
}

// flags are how many values a function's flags may have.
var flags = map[string]uint32{"StreamCreateWithPriority": 2, "EventCreate": 4, "MemHostAlloc": 8}

// value is a random argument or result of a function.
func (f *fake) value(name string, typ reflect.Type, result bool) reflect.Value {
	v := reflect.New(typ).Elem()
	switch x := v.Addr().Interface().(type) {
	case *driver.Result:
		*x = f.result
	case **driver.LaunchConfig:
		*x = f.config()
	case *[]driver.GraphNode:
		*x = f.list()
	case **driver.KernelNode:
		c := f.config()
		*x = &driver.KernelNode{Func: driver.Function(f.Uint64()), Grid: c.Grid, Block: c.Block, Shared: c.Shared, Params: []byte(f.text(4096))}
	case **driver.CopyNode:
		*x = f.copyNode()
	case **driver.FillNode:
		*x = &driver.FillNode{Dst: driver.Ptr(f.Uint64()), Value: f.Uint32(), ElementSize: 1 << f.IntN(3), Elements: f.Int64N(1 << 47)}
	case *driver.CaptureInfo:
		if x.Status = driver.CaptureStatus(f.IntN(3)); x.Status == driver.CaptureActive {
			x.ID, x.Graph, x.Dependencies = f.Uint64(), driver.Graph(f.Uint64()), f.list()
		}
	case *driver.GraphUpdate:
		*x = driver.GraphUpdate{Result: driver.UpdateResult(f.IntN(8)), Node: driver.GraphNode(f.Uint64()), From: driver.GraphNode(f.Uint64())}
	case *string:
		*x = f.text(map[bool]int{true: 255, false: 600}[result])
	case *[]byte:
		*x = []byte(f.text(4096))
	case *[16]byte:
		copy(x[:], f.text(16))
	case *float32:
		*x = math.Float32frombits(f.Uint32() &^ (1 << 30)) // finite
	case *int64:
		*x = f.Int64N(1 << 47)
	case *int:
		if *x = int(int32(f.Uint32())); name == "DriverGetVersion" {
			*x = 11040 + f.IntN(10000)
		}
	case *uint32:
		if *x = f.Uint32(); flags[name] > 0 {
			*x %= flags[name]
		}
	case *bool:
		*x = f.IntN(2) == 1
	default:
		f.word(v)
	}
	return v
}

// list has as many nodes as every list of the call.
func (f *fake) list() []driver.GraphNode {
	var nodes []driver.GraphNode
	for range f.nodes {
		nodes = append(nodes, driver.GraphNode(f.Uint64()))
	}
	return nodes
}

func (f *fake) copyNode() *driver.CopyNode {
	c := &driver.CopyNode{Bytes: f.Int64N(1 << 47)}
	if c.DstHost = uintptr(f.IntN(2)) * 4096; c.DstHost == 0 {
		c.Dst = driver.Ptr(f.Uint64())
	}
	if c.SrcHost = uintptr(f.IntN(2)) * 8192; c.SrcHost == 0 {
		c.Src = driver.Ptr(f.Uint64())
	}
	return c
}

// word fills handles, addresses and enumerations.
func (f *fake) word(v reflect.Value) {
	if v.CanInt() {
		v.SetInt(int64(int32(f.Uint64() >> (64 - v.Type().Bits()))))
	} else {
		v.SetUint(f.Uint64() >> (64 - v.Type().Bits()))
	}
}

// text has 0 to n characters other than NUL and space.
func (f *fake) text(n int) string {
	b := make([]byte, f.IntN(n+1))
	for i := range b {
		b[i] = byte('!' + f.IntN(255-'!'))
	}
	return string(b)
}

func (f *fake) config() *driver.LaunchConfig {
	dim := func() [3]uint32 { return [3]uint32{f.Uint32() | 1, f.Uint32() | 1, f.Uint32() | 1} }
	c := &driver.LaunchConfig{Grid: dim(), Block: dim(), Shared: f.Uint32(), Stream: driver.Stream(f.Uint64()), Dependent: f.IntN(2) == 1}
	if f.IntN(2) == 1 {
		c.Cluster = dim()
	}
	return c
}

// call calls a function of the table with random arguments.
func (f *fake) call(api *driver.API, name string) (args, results []any) {
	field := reflect.ValueOf(api).Elem().FieldByName(name)
	f.nodes = f.IntN(9)
	var in []reflect.Value
	for i := range field.Type().NumIn() {
		in = append(in, f.value(name, field.Type().In(i), false))
	}
	args = plain(in) // before the call, which must not change them
	return args, plain(field.Call(in))
}

// despite says which results come beside a failure too: a compiler's log, and why an update was refused.
func (f *fake) despite(r any) bool {
	switch r.(type) {
	case driver.Result, driver.GraphUpdate:
		return true
	case string:
		return f.name == "ModuleLoadData"
	}
	return false
}

// wanted are the results that the binding must give: none but zero values beside a failure, but for a few.
func (f *fake) wanted() []any {
	if f.result == driver.Success {
		return f.results
	}
	var out []any
	for _, r := range f.results {
		if !f.despite(r) {
			r = reflect.Zero(reflect.TypeOf(r)).Interface()
		}
		out = append(out, r)
	}
	return out
}

// Every argument and every result goes through the library as it is.
func TestMarshalling(t *testing.T) {
	f := &fake{Rand: testutil.Rand(t)}
	api, _ := open(t, shimtest.Install(t, f.api()))
	names := functions()
	if len(names) < 85 {
		t.Fatalf("the table has %d functions", len(names))
	}
	var wg sync.WaitGroup
	for range 40 {
		f.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names {
			f.result = driver.Result(max(0, f.IntN(1000)-500))
			wg.Go(func() { f.check(t, api, name) }) // a fresh goroutine has a small stack
			wg.Wait()
		}
	}
}

func (f *fake) check(t *testing.T, api *driver.API, name string) {
	args, results := f.call(api, name)
	if f.name != name || !reflect.DeepEqual(f.args, args) {
		t.Errorf("%s%v arrives as %s%v", name, args, f.name, f.args)
	}
	if want := f.wanted(); !reflect.DeepEqual(results, want) {
		t.Errorf("%s gives %v, want %v", name, results, want)
	}
}

// What no library has is left out.
func TestSimulatorOnly(t *testing.T) {
	f := &fake{Rand: testutil.Rand(t)}
	api, src := open(t, shimtest.Install(t, f.api()))
	if api.Annotate != nil || api.Explain != nil || api.HostTime != nil || api.EventTime != nil || api.Unbind {
		t.Error("the table has functions of a simulated GPU")
	}
	if len(src.Missing) != 0 || src.Version < 11040 || !strings.HasSuffix(src.Path, "libcuda.so.1") {
		t.Errorf("source: %+v", src)
	}
	if len(src.Probes) != 1 || src.Probes[0].Err != nil {
		t.Errorf("probes: %v", src.Probes)
	}
}

// Drivers before CUDA 11.8 and 12.4 lack functions that have a substitute.
func TestOlderDriver(t *testing.T) {
	f := &fake{Rand: testutil.Rand(t)}
	newer := []string{"cuFuncLoad", "cuLaunchKernelEx", "cuGraphAddKernelNode_v2", "cuGraphExecKernelNodeSetParams_v2"}
	api, src := open(t, shimtest.Install(t, f.api(), newer...))
	if want := newer; !slices.Equal(src.Missing, want) {
		t.Errorf("missing: %v, want %v", src.Missing, want)
	}
	for range 20 {
		f.result = driver.Success
		f.check(t, api, "GraphAddKernelNode")
		f.check(t, api, "GraphExecKernelNodeSetParams")
		c, fn, params := f.config(), driver.Function(f.Uint64()), []byte(f.text(4096))
		f.name = ""
		r := api.LaunchKernelEx(c, fn, params)
		if c.Cluster != [3]uint32{} {
			if r != driver.NotSupported || f.name != "" {
				t.Errorf("a cluster: %v, %s called", r, f.name)
			}
			continue
		}
		want := *c
		want.Dependent = false
		if args := []any{want, fn, string(params)}; !reflect.DeepEqual(f.args, args) {
			t.Errorf("launch arrives as %v, want %v", f.args, args)
		}
	}
	if r := api.FuncLoad(7); r != driver.Success || f.name != "FuncGetAttribute" || f.args[1] != driver.Function(7) {
		t.Errorf("FuncLoad: %v, %s%v", r, f.name, f.args)
	}
}

// Calls from many goroutines do not share what they point to.
func TestConcurrentLaunches(t *testing.T) {
	f := &fake{Rand: testutil.Rand(t)}
	table := f.api()
	table.LaunchKernelEx = func(c *driver.LaunchConfig, fn driver.Function, params []byte) driver.Result {
		if c.Grid[0] != uint32(fn) || string(params) != strings.Repeat(string(rune(fn)), int(fn)) {
			return driver.InvalidValue
		}
		return driver.Success
	}
	table.MemAllocAsync = func(bytes int64, s driver.Stream) (driver.Ptr, driver.Result) {
		return driver.Ptr(bytes) * driver.Ptr(s), driver.Success
	}
	api, _ := open(t, shimtest.Install(t, table))
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 100 {
				fn := driver.Function(1 + (g*31+i)%100)
				c := &driver.LaunchConfig{Grid: [3]uint32{uint32(fn), 1, 1}, Block: [3]uint32{1, 1, 1}}
				if r := api.LaunchKernelEx(c, fn, []byte(strings.Repeat(string(rune(fn)), int(fn)))); r != driver.Success {
					t.Errorf("launch %d: %v", fn, r)
				}
				if p, r := api.MemAllocAsync(int64(g), driver.Stream(i)); r != driver.Success || p != driver.Ptr(g*i) {
					t.Errorf("alloc(%d, %d) = %d, %v", g, i, p, r)
				}
			}
		})
	}
	wg.Wait()
}

// A long log is cut, not spilled.
func TestLongLog(t *testing.T) {
	f := &fake{Rand: testutil.Rand(t)}
	table := f.api()
	table.ModuleLoadData = func([]byte) (driver.Module, string, driver.Result) {
		return 0, strings.Repeat("ptxas error\n", 10000), driver.InvalidPTX
	}
	api, _ := open(t, shimtest.Install(t, table))
	_, log, r := api.ModuleLoadData([]byte(".version 7.4"))
	if r != driver.InvalidPTX || len(log) < 4000 || !strings.HasPrefix(strings.Repeat("ptxas error\n", 10000), log) {
		t.Errorf("%v, a log of %d bytes: %s", r, len(log), fmt.Sprintf("%.40q", log))
	}
}

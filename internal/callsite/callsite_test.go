package callsite

import (
	"bytes"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// both is one place seen by Capture and by runtime.Callers.
type both struct {
	site Site
	want []string
}

// here records its caller both ways, on one line of it.
//
//go:noinline
func here() (b both) {
	var pcs [64]uintptr
	Capture(1, &b.site)
	n := runtime.Callers(2, pcs[:])
	frames := runtime.CallersFrames(pcs[:n])
	for {
		f, more := frames.Next()
		b.want = append(b.want, describe(f))
		if !more {
			return b
		}
	}
}

func describe(f runtime.Frame) string { return fmt.Sprintf("%s %s:%d", f.Function, f.File, f.Line) }

// check demands that the site is a prefix of what runtime.Callers saw, of at least
// eight frames unless the stack has fewer. The runtime's own frames do not count:
// runtime.Callers leaves some of them out.
func (b both) check(t *testing.T, function string) {
	t.Helper()
	var got []string
	least := depth
	for _, f := range b.site.Frames() {
		if strings.HasPrefix(f.Function, "runtime.") {
			least--
			continue
		}
		got = append(got, describe(f))
	}
	b.want = slices.DeleteFunc(b.want, func(line string) bool { return strings.HasPrefix(line, "runtime.") })
	if len(got) > len(b.want) || len(got) < min(least, len(b.want)) {
		t.Fatalf("%d frames, runtime.Callers has %d:\n%s\nwant\n%s", len(got), len(b.want), strings.Join(got, "\n"), strings.Join(b.want, "\n"))
	}
	for i := range got {
		if got[i] != b.want[i] {
			t.Fatalf("frame %d is %s, runtime.Callers has %s", i, got[i], b.want[i])
		}
	}
	if !strings.Contains(got[0], function) {
		t.Fatalf("the innermost frame is %s, want %s", got[0], function)
	}
}

func deep(n int) both {
	if n == 0 {
		return here()
	}
	b := deep(n - 1)
	return b
}

func TestDeepStacks(t *testing.T) {
	for _, n := range []int{0, 1, 2, 5, 6, 7, 8, 9, 100, 20_000} {
		deep(n).check(t, ".deep ")
	}
}

func inlined() both         { return here() }
func inlinedTwice() both    { return inlined() }
func inlinedThrice() both   { return inlinedTwice() }
func generic[T any](T) both { return here() }

//go:noinline
func genericDeep[T any](x T, n int) both {
	if n == 0 {
		return here()
	}
	return genericDeep([]any{x}, n-1)
}

func TestInlining(t *testing.T) {
	inlinedThrice().check(t, ".inlined ")
	func() both { return inlinedTwice() }().check(t, ".inlined ")
}

// The function that the last counter is inlined into belongs to the chain.
func TestInliningAtTheEnd(t *testing.T) {
	b := around(here, 2*depth)
	b.check(t, ".around")
	frames := b.site.Frames()
	compiled := runtime.FuncForPC(runtime.FuncForPC(b.site[depth-1] - 1).Entry()).Name()
	if last := frames[len(frames)-1].Function; last != compiled {
		t.Errorf("the outermost of %d frames is %s, want %s", len(frames), last, compiled)
	}
}

func aroundInlined(f func() both, n int) both { return around(f, n-1) }

//go:noinline
func around(f func() both, n int) both {
	if n == 0 {
		return f()
	}
	return aroundInlined(f, n)
}

func TestGenerics(t *testing.T) {
	generic(1).check(t, ".generic")
	generic("x").check(t, ".generic")
	genericDeep(struct{ a, b int }{}, 2).check(t, ".genericDeep")
}

func TestClosures(t *testing.T) {
	n := 3
	var f func() both
	f = func() both {
		if n--; n > 0 {
			return f()
		}
		return here()
	}
	f().check(t, "TestClosures.func1")
}

type method struct{ _ [3]int }

func (method) value() both    { return here() }
func (*method) pointer() both { return here() }

type embeds struct{ *method }

func TestMethodsAndWrappers(t *testing.T) {
	var m method
	for name, f := range map[string]func() both{
		".value":   m.value,
		".pointer": m.pointer,
	} {
		f().check(t, name)
	}
	for _, i := range []interface{ value() both }{m, &m, embeds{&m}, &embeds{&m}} {
		i.value().check(t, "method.value")
	}
}

func TestGoroutineEntry(t *testing.T) {
	results := make(chan both)
	go func() { results <- here() }()
	(<-results).check(t, "TestGoroutineEntry")
	go func() { results <- deep(1) }()
	(<-results).check(t, ".deep ")
	// A goroutine whose entry captures: nothing lies below but the runtime.
	sites := make(chan Site, 1)
	go entry(sites)
	s := <-sites
	if f := s.Frames(); len(f) == 0 || !strings.HasSuffix(f[0].Function, ".entry") {
		t.Fatalf("frames of a goroutine's entry: %v", f)
	}
	if s[depth-1] != 0 {
		t.Fatalf("a goroutine's entry has %d frames below", depth-1)
	}
}

func entry(sites chan<- Site) {
	var s Site
	for i := range s {
		s[i] = 1 // what was there before must go
	}
	Capture(0, &s)
	sites <- s
}

func TestDeferAndPanic(t *testing.T) {
	var b [3]both
	func() {
		defer func() { b[0] = here() }()
	}()
	func() {
		defer func() {
			b[1] = here()
			_ = recover()
			b[2] = here()
		}()
		deepPanic(5)
	}()
	for i := range b {
		b[i].check(t, "TestDeferAndPanic")
	}
	here().check(t, "TestDeferAndPanic") // after recovery
}

//go:noinline
func deepPanic(n int) int {
	if n == 0 {
		panic("on purpose")
	}
	return deepPanic(n-1) + 1
}

func places() iter.Seq[both] {
	return func(yield func(both) bool) {
		if yield(here()) {
			yield(here())
		}
	}
}

func TestRangeOverFunc(t *testing.T) {
	for b := range places() {
		b.check(t, "places")
		here().check(t, "TestRangeOverFunc")
	}
	next, stop := iter.Pull(places())
	defer stop()
	b, _ := next()
	b.check(t, "places")
}

// Stacks grow, shrink and move under goroutines that capture all the time.
func TestMovingStacks(t *testing.T) {
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 60 {
				deep((g*37+i*101)%3000).check(t, ".deep ")
				if i%20 == 0 {
					runtime.GC()
				}
			}
		})
	}
	wg.Wait()
}

func TestSkip(t *testing.T) {
	var all Site
	outer(0, &all)
	for skip := 1; skip < 4; skip++ {
		var s Site
		outer(skip, &s)
		for i := 1; i+skip < depth; i++ { // the outermost common counters; the call of outer differs
			if i > 2 && s[i] != all[i+skip] {
				t.Errorf("skip %d: counter %d is %#x, want %#x", skip, i, s[i], all[i+skip])
			}
		}
	}
	var s Site
	Capture(1000, &s)
	if s != (Site{}) || s.String() != "unknown" {
		t.Errorf("beyond the stack: %v", s)
	}
}

//go:noinline
func outer(skip int, s *Site) { inner(skip, s) }

//go:noinline
func inner(skip int, s *Site) { Capture(skip, s) }

func TestUser(t *testing.T) {
	var s Site
	Capture(0, &s)
	_, _, line, _ := runtime.Caller(0)
	if got, want := s.String(), fmt.Sprintf("callsite_test.go:%d", line-1); got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
	file, _, function := s.User(func(function, _ string) bool { return !strings.Contains(function, "testing.") })
	if !strings.HasSuffix(file, "testing.go") || function != "testing.tRunner" {
		t.Errorf("User = %s %s, want testing.tRunner", file, function)
	}
	if _, _, function := s.User(func(string, string) bool { return true }); function != "testing.tRunner" {
		t.Errorf("with nothing but library the place is %s, want the outermost", function)
	}
	if file, line, function := new(Site).User(IsLibrary); file != "" || line != 0 || function != "" {
		t.Errorf("an empty site is at %s:%d in %s", file, line, function)
	}
}

func TestIsLibrary(t *testing.T) {
	for _, c := range []struct {
		function, file string
		want           bool
	}{
		{Module + "/tensor.(*Tensor).Add", "/x/tensor/ops.go", true},
		{Module + "/internal/cpu.run[...]", "/x/run.go", true},
		{Module + "/data.Batches[...].func1-range2", "/x/data.go", true},
		{Module + ".main", "/x/main.go", false},
		{Module + "/tensor.TestAdd", "/x/tensor/ops_test.go", false},
		{Module + "/tensor_test.TestAdd", "/x/tensor/ops_test.go", false},
		{Module + "/cmd/warpline.main", "/x/main.go", false},
		{Module + "/examples/gan.main", "/x/main.go", false},
		{Module + "extra/tensor.Add", "/x/tensor.go", false},
		{"main.main", "/x/main.go", false},
		{"example.com/a.b/c%2ed.(*T).M", "/x/m.go", false},
		{"slices.SortFunc[...]", "/go/slices.go", true},
		{"fmt.(*pp).handleMethods", "/go/print.go", true},
		{"testing.(*common).Log", "/go/testing.go", true},
		{"net/http.HandlerFunc.ServeHTTP", "/go/server.go", false},

		{"main.main.Batches[...].func1", roots().module + "data/loader.go", true},
		{Module + "/examples.program.Batches[...].func1", roots().module + "data/loader.go", true},
		{Module + "/tensor_test.TestAdd.Batches[...].func1", roots().module + "data/loader.go", true},
		{"main.main.All[...].func1", roots().std + "maps/iter.go", true},
		{"main.main.func1", "/x/data/loader.go", false},
		{"main.main", roots().module + "main.go", false},
		{"main.main", roots().module + "scratch/main.go", false},
		{"main.main", roots().module + "examples/digits/main.go", false},
		{"main.main", roots().std + "cmd/go/main.go", false},
	} {
		if got := IsLibrary(c.function, c.file); got != c.want {
			t.Errorf("IsLibrary(%q, %q) = %v", c.function, c.file, got)
		}
	}
}

// TestFolders: the module's packages that are no programs are the library's, but for those of users.
func TestFolders(t *testing.T) {
	users := map[string]bool{"bench": true, "cmd": true, "examples": true, "tools": true}
	found := map[string]bool{}
	for _, pattern := range []string{"../../*/*.go", "../../*/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			first := strings.Split(filepath.ToSlash(file), "/")[2]
			if source, err := os.ReadFile(file); err != nil || users[first] || bytes.Contains(source, []byte("package main\n")) {
				continue
			}
			if found[first] = true; !folders[first] {
				t.Errorf("%s is in no folder of the library", file)
			}
		}
	}
	for name := range folders {
		if !found[name] {
			t.Errorf("the library has no folder %s", name)
		}
	}
}

func TestSitesCompare(t *testing.T) {
	var sites []Site
	for range 2 {
		var s Site
		Capture(0, &s)
		sites = append(sites, s)
	}
	var other Site
	Capture(0, &other)
	if sites[0] != sites[1] || slices.Contains(sites, other) {
		t.Error("equal places must be equal sites, others not")
	}
}

func TestCaptureDoesNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		var s Site
		Capture(0, &s)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

//go:noinline
func benchmarkAt(b *testing.B, n int) int {
	if n > 0 {
		return benchmarkAt(b, n-1) + 1
	}
	var s Site
	for b.Loop() {
		Capture(0, &s)
	}
	return 0
}

func BenchmarkCapture(b *testing.B) { benchmarkAt(b, depth) }

func BenchmarkString(b *testing.B) {
	var s Site
	Capture(0, &s)
	for b.Loop() {
		_ = s.String()
	}
}

// TestGoroutineNumber: the record of a goroutine tells the number that its trace tells, of many at once, and in the deep.
func TestGoroutineNumber(t *testing.T) {
	if hasWords && numberAt() < 0 {
		t.Fatalf("%s keeps the number of a goroutine in another place: Goroutine makes traces", runtime.Version())
	}
	var deep func(n int) uint64
	deep = func(n int) uint64 {
		if n == 0 {
			return Goroutine()
		}
		return deep(n - 1)
	}
	seen := sync.Map{}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			want := traced()
			if _, twice := seen.LoadOrStore(want, true); twice || want == 0 {
				t.Errorf("two goroutines have the number %d", want)
			}
			for range 10 {
				runtime.Gosched()
				if got := deep(100); got != want {
					t.Errorf("number %d, in a trace %d", got, want)
				}
			}
		})
	}
	all.Wait()
}

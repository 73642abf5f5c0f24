package nvml

import (
	_ "embed"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/dl"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/testutil/cc"
)

//go:embed testdata/nvml.c
var source []byte

// The scenarios of testdata/nvml.c.
const (
	plain = iota
	divided
	graphics
	lost
	forbidden
	hostile
	crowded
)

// fake makes the library that Open finds one of a scenario, which starts with a result.
func fake(t *testing.T, scenario int, start Return, without ...string) *dl.Library {
	t.Helper()
	path := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	if err := os.WriteFile(path, cc.Library(t, "nvml.c", map[string][]byte{"nvml.c": source}, without...), 0o777); err != nil {
		t.Fatal(err)
	}
	lib, err := dl.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	set, err := lib.Lookup("fake_set")
	if err != nil {
		t.Fatal(err)
	}
	set.Call(uintptr(scenario), uintptr(start))
	t.Setenv(PathEnv, path)
	return lib
}

func open(t *testing.T, scenario int, without ...string) *Library {
	t.Helper()
	fake(t, scenario, Success, without...)
	l, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// TestLayout compares the structures with those of a C compiler, which were compared with nvml.h.
func TestLayout(t *testing.T) {
	lib := fake(t, plain, Success)
	at, err := lib.Lookup("layout")
	if err != nil {
		t.Fatal(err)
	}
	want := []uintptr{
		unsafe.Sizeof(memoryV1{}), unsafe.Offsetof(memoryV1{}.Free), unsafe.Offsetof(memoryV1{}.Used),
		unsafe.Sizeof(memoryV2{}), unsafe.Offsetof(memoryV2{}.Total), unsafe.Offsetof(memoryV2{}.Reserved), unsafe.Offsetof(memoryV2{}.Free), unsafe.Offsetof(memoryV2{}.Used),
		unsafe.Sizeof(utilization{}), unsafe.Offsetof(utilization{}.Memory),
		unsafe.Sizeof(processV1{}), unsafe.Offsetof(processV1{}.Used),
		unsafe.Sizeof(processV2{}), unsafe.Offsetof(processV2{}.Used), unsafe.Offsetof(processV2{}.Instance), unsafe.Offsetof(processV2{}.Compute),
		unsafe.Sizeof(sample{}), unsafe.Offsetof(sample{}.Stamp), unsafe.Offsetof(sample{}.SM), unsafe.Offsetof(sample{}.Decoder),
		unsafe.Sizeof(pciInfo{}), unsafe.Offsetof(pciInfo{}.Domain), unsafe.Offsetof(pciInfo{}.ID),
	}
	if got := hostmem.Slice[uintptr](uintptr(at), len(want)); !slices.Equal(got, want) {
		t.Errorf("C says %d, Go %d", got, want)
	}
}

func TestPlain(t *testing.T) {
	l := open(t, plain)
	if driver, cuda := l.Versions(); driver != "535.54.03" || cuda != "12.2" {
		t.Errorf("driver %q, CUDA %q", driver, cuda)
	}
	if n, err := l.Count(); n != 2 || err != nil {
		t.Fatalf("%d cards, %v", n, err)
	}
	const MiB = 1 << 20
	d := l.Read(0)
	want := map[Key]float64{
		MemoryTotal: 81920 * MiB, MemoryUsed: 21051 * MiB, MemoryFree: 60000 * MiB, MemoryReserved: 869 * MiB, Utilization: 93, MemoryBusy: 41,
		Power: 245.3, PowerLimit: 400, Temperature: 47, SlowdownAt: 89, SMClock: 1275e6, SMClockMax: 1410e6, MemoryClock: 1593e6, MemoryClockMax: 1593e6,
		PCIeGeneration: 4, PCIeMaxGen: 4, PCIeWidth: 8, PCIeMaxWidth: 16, PCIeSent: 4000 * 1024, PCIeReceived: 0,
		ECC: 1, ECCCorrected: 5e9, ECCUncorrected: 1, MIG: 0,
	}
	if !reflect.DeepEqual(d.Values, want) || d.Lacks != nil {
		t.Errorf("values %v, lacks %v, want %v", d.Values, d.Lacks, want)
	}
	if d.Name != "NVIDIA A100-SXM4-80GB" || d.UUID != "GPU-513536b6-7d19-9063-b049-1e69664bb298" || d.Bus != "0000:01:00.0" || d.Failed != "" {
		t.Errorf("%+v", d)
	}
	if len(d.Reasons) != 2 || d.Reasons[0].Name != "power cap" || d.Reasons[1].Name != "hardware thermal" {
		t.Errorf("reasons %+v", d.Reasons)
	}
	if len(d.Processes) != 1 || d.Processes[0].PID != 4242 || *d.Processes[0].Memory != 20000*MiB || *d.Processes[0].Busy != 91 || d.Processes[0].Instance != "" {
		t.Errorf("processes %+v", d.Processes)
	}
	if d := l.Read(7); d.Failed == "" {
		t.Error("a card that is not there did not fail")
	}
	for _, f := range figures { // every figure that is listed is told, and the reverse
		if _, ok := d.Values[f.Key]; !ok {
			t.Errorf("%s is listed and never told", f.Key)
		}
	}
	if len(d.Values) != len(figures) {
		t.Errorf("%d values, %d listed", len(d.Values), len(figures))
	}
}

func TestDivided(t *testing.T) {
	d := open(t, divided).Read(0)
	if d.Values[MIG] != 1 || !strings.Contains(d.Lacks[Utilization], "divided") || len(d.Instances) != 4 {
		t.Fatalf("%+v", d)
	}
	in := d.Instances[2]
	if in.Name != "NVIDIA A100-SXM4-80GB MIG 1g.20gb 5/0" || in.Values[MemoryTotal] != 19968<<20 || in.Values[MemoryUsed] != 13<<20 {
		t.Errorf("%+v", in)
	}
	if len(in.Processes) != 1 || in.Processes[0].Instance != "5/0" {
		t.Errorf("%+v", in.Processes)
	}
}

func TestLacks(t *testing.T) {
	d := open(t, graphics).Read(0)
	for _, k := range []Key{PowerLimit, ECC, ECCCorrected, ECCUncorrected, MIG} {
		if _, ok := d.Value(k); ok || d.Lacks[k] != "this card does not tell" {
			t.Errorf("%s: %v, %q", k, ok, d.Lacks[k])
		}
	}
	if len(d.Processes) != 2 || !d.Processes[0].Graphics || d.Processes[1].Graphics || d.Processes[1].Memory != nil {
		t.Errorf("%+v", d.Processes)
	}
	if d := open(t, forbidden).Read(0); d.Lacks[PowerLimit] != "only an administrator may read it" || d.Lacks["process_utilization_percent"] != "only an administrator may read it" {
		t.Errorf("%v", d.Lacks)
	}
}

func TestLost(t *testing.T) {
	l := open(t, lost)
	for i := range 2 {
		if d := l.Read(i); !strings.Contains(d.Failed, "fallen off the bus") || len(d.Values) != 0 {
			t.Errorf("%+v", d)
		}
	}
}

// TestHostile: what a broken library says is not believed.
func TestHostile(t *testing.T) {
	l := open(t, hostile)
	if n, err := l.Count(); err == nil {
		t.Errorf("%d cards", n)
	}
	d := l.Read(0)
	if len(d.Processes) != 0 || d.Lacks["processes"] != "a number that cannot be" || len(d.Name) > 1024 {
		t.Errorf("%+v", d)
	}
	if len(d.Reasons) != 2 || d.Reasons[1].Name != "reason 0x8000000000000000" {
		t.Errorf("%+v", d.Reasons)
	}
}

func TestCrowd(t *testing.T) {
	l := open(t, crowded)
	if d := l.Read(0); len(d.Processes) < 100 || *d.Processes[99].Memory != 99<<20 || d.Reasons[0].Name != "idle" || d.Reasons[0].Slow {
		t.Errorf("%d processes, %v", len(d.Processes), d.Reasons)
	}
}

// TestOldDriver: of functions that newer drivers have the older ones are taken.
func TestOldDriver(t *testing.T) {
	d := open(t, plain, "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetCurrentClocksEventReasons").Read(0)
	if d.Values[MemoryUsed] != 21920<<20 || d.Lacks[MemoryReserved] != "this driver does not tell" || len(d.Processes) != 2 || len(d.Reasons) != 2 {
		t.Errorf("%+v", d)
	}
}

// TestEachMissing leaves out each function of the library in turn: nothing fails but what the function tells.
func TestEachMissing(t *testing.T) {
	symbols := regexp.MustCompile(`nvml(?:Device|System)\w+`).FindAllString(string(source), -1)
	symbols = slices.Compact(slices.Sorted(slices.Values(symbols)))
	for _, group := range [][]string{symbols, symbols[:len(symbols)/2], symbols[len(symbols)/2:]} {
		l := open(t, plain, group...)
		l.Versions()
		l.Count()
		d := l.Read(0)
		if len(group) == len(symbols) && (d.Failed == "" || d.Name != "card 0") {
			t.Errorf("without functions: %+v", d)
		}
	}
}

func TestInitErrors(t *testing.T) {
	for r, hint := range initHints {
		fake(t, plain, r)
		_, err := Open()
		var a *advice.Error
		if !errors.As(err, &a) || a.Hint != hint || !errors.Is(err, r) || !strings.Contains(a.Text, r.String()) {
			t.Errorf("%v: %v", r, err)
		}
	}
	for path, want := range map[string]string{"here": "absolute", filepath.Join(t.TempDir(), "none.so"): "none.so"} {
		t.Setenv(PathEnv, path)
		if _, err := Open(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

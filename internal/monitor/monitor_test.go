package monitor

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/nvml"
	"github.com/warpline-ml/warpline/internal/presence"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/testutil"
)

const gib = 1 << 30

// example is a machine with a busy card, one that lacks much, a divided one and a lost one, a training on the first and one
// on a simulated card.
func example() *Snapshot {
	values := map[nvml.Key]float64{
		nvml.MemoryTotal: 80 * gib, nvml.MemoryUsed: 60 * gib, nvml.MemoryFree: 19 * gib, nvml.MemoryReserved: gib, nvml.Utilization: 93, nvml.MemoryBusy: 41,
		nvml.Power: 345, nvml.PowerLimit: 400, nvml.Temperature: 71, nvml.SMClock: 1275e6, nvml.SMClockMax: 1410e6,
		nvml.PCIeGeneration: 4, nvml.PCIeWidth: 8, nvml.PCIeMaxWidth: 16, nvml.ECC: 1, nvml.ECCUncorrected: 2, nvml.MIG: 0,
	}
	cap := nvml.Reason{Name: "power cap", Text: "the power limit holds the clocks down", Slow: true}
	cards := []nvml.Device{
		{Index: 0, Name: "NVIDIA A100-SXM4-80GB", Bus: "0000:01:00.0", UUID: "GPU-1", Values: values, Reasons: []nvml.Reason{cap},
			Processes: []nvml.Process{{PID: math.MaxInt32, Memory: new(59.0 * gib), Busy: new(91.0)}}},
		{Index: 1, Name: "NVIDIA GeForce RTX 3090", Bus: "0000:02:00.0", Values: map[nvml.Key]float64{nvml.MemoryTotal: 24 * gib, nvml.MemoryUsed: 1 << 20, nvml.Utilization: 0},
			Lacks: map[nvml.Key]string{nvml.ECC: "this card does not tell", nvml.Power: "this card does not tell", nvml.PowerLimit: "only an administrator may read it"}},
		{Index: 2, Name: "NVIDIA A100-SXM4-80GB", Values: map[nvml.Key]float64{nvml.MemoryTotal: 80 * gib, nvml.MemoryUsed: 2 * gib, nvml.MIG: 1},
			Lacks: map[nvml.Key]string{nvml.Utilization: "NVML has none of a divided card"}, Processes: []nvml.Process{{PID: math.MaxInt32 - 1}},
			Instances: []nvml.Device{{Index: 0, Name: "MIG 1g.20gb 3/0", Values: map[nvml.Key]float64{nvml.MemoryTotal: 20 * gib, nvml.MemoryUsed: gib},
				Processes: []nvml.Process{{PID: math.MaxInt32 - 1, Memory: new(1.0 * gib), Instance: "3/0"}}}}},
		{Index: 3, Name: "card 3", Failed: "the card has fallen off the bus: reboot, and look at its power and its seat", Values: map[nvml.Key]float64{}},
	}
	s := &Snapshot{Time: time.Date(2026, 11, 23, 13, 45, 2, 0, time.UTC), Driver: "535.54.03", CUDA: "12.2",
		Host: Host{Cores: 64, Busy: new(12.4), Memory: new(int64(512 * gib)), Used: new(int64(100 * gib))}}
	for i := range cards {
		s.addCard(&cards[i])
	}
	s.addOwn([]presence.Process{
		{PID: math.MaxInt32, Command: "warpline train gpt", Steps: 311, Pace: 0.125, Devices: []presence.Device{{Name: "cuda:0", Model: "A100", Bus: "0000:01:00.0", Total: 80 * gib, Allocated: 40 * gib, Reserved: 58 * gib}},
			Run: &presence.Run{Task: "gpt", Step: 311, Steps: 1000, Loss: new(2.5)}},
		{PID: 7, Hidden: true, Command: "evil\x1b[2J", Devices: []presence.Device{{Name: "sim:0", Model: "Simulated H100 80 GB", Total: 80 * gib, Allocated: gib, Reserved: 2 * gib}}},
	})
	s.clean()
	return s
}

func TestText(t *testing.T) {
	s := example()
	h := new(History)
	for range 3 {
		h.Add(s)
	}
	for _, v := range []View{{Width: 140, Lacks: true}, {Width: 80}, {Width: 44, Sort: "util"}, {Width: 140, History: h}} {
		name := fmt.Sprintf("top%d", v.Width)
		if v.History != nil {
			name += "history"
		}
		text := v.Text(s)
		testutil.Golden(t, "testdata/"+name+".txt", []byte(text))
		for _, line := range strings.Split(text, "\n") {
			if render.Width(line) > v.Width {
				t.Errorf("wider than %d: %q", v.Width, line)
			}
		}
	}
}

func TestJoin(t *testing.T) {
	s := example()
	if len(s.Devices) != 6 || s.Devices[0].Allocated != 40*gib || s.Devices[5].Kind != Simulated {
		t.Fatalf("%+v", s.Devices)
	}
	p := s.process(math.MaxInt32, false)
	if len(p.Uses) != 1 || *p.Uses[0].Memory != 59*gib || *p.Uses[0].Reserved != 58*gib || p.Own.Steps != 311 {
		t.Errorf("%+v", p)
	}
	if p := s.process(math.MaxInt32-1, false); len(p.Uses) != 1 || p.Uses[0].Device != "2/0" {
		t.Errorf("on the card and its instance: %+v", p.Uses)
	}
	for _, p := range s.Processes {
		if strings.ContainsRune(p.Command, 0x1b) || p.Own != nil && strings.ContainsRune(p.Own.Command, 0x1b) {
			t.Errorf("%q", p.Command)
		}
	}
	if b, err := json.Marshal(s); err != nil || !strings.Contains(string(b), `"power_watts":345`) {
		t.Errorf("%s %v", b, err)
	}
}

func TestSorts(t *testing.T) {
	s := &Snapshot{Processes: []Process{
		{PID: 1, Elapsed: 5, Uses: []Use{{Memory: new(10.0)}}},
		{PID: 2, Elapsed: 9, Uses: []Use{{Memory: new(30.0), Busy: new(1.0)}}},
		{PID: 3, Elapsed: 1, Uses: []Use{{Reserved: new(int64(20)), Busy: new(50.0)}}},
	}}
	for by, want := range map[string]string{"memory": "2 3 1", "util": "3 2 1", "pid": "1 2 3", "elapsed": "2 1 3"} {
		var got []string
		for _, p := range (View{Sort: by}).sorted(s) {
			got = append(got, strconv.Itoa(p.PID))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", by, got, want)
		}
	}
}

// TestPrometheus reads the metrics by the format's own rules: a head for each metric, once, before its samples; samples of a
// metric together, none twice.
func TestPrometheus(t *testing.T) {
	var b strings.Builder
	s := example()
	s.Devices[0].Name = "quo\"te\\ and\nline"
	if err := s.WritePrometheus(&b); err != nil {
		t.Fatal(err)
	}
	sample := regexp.MustCompile(`^([a-z_]+)(\{([a-z]+="(\\.|[^"\\])*",?)*\})? (\S+)$`)
	seen, heads, current := map[string]bool{}, map[string]bool{}, ""
	for lines := bufio.NewScanner(strings.NewReader(b.String())); lines.Scan(); {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, "# "); ok {
			f := strings.Fields(rest)
			key := f[0] + " " + f[1]
			if heads[key] || f[0] == "HELP" && len(f) < 3 || f[0] == "TYPE" && f[1] != current {
				t.Errorf("head %q", line)
			}
			heads[key], current = true, f[1]
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil || m[1] != current || !heads["TYPE "+m[1]] || seen[m[1]+m[2]] {
			t.Errorf("sample %q of %s", line, current)
			continue
		}
		if _, err := strconv.ParseFloat(m[5], 64); err != nil {
			t.Error(err)
		}
		seen[m[1]+m[2]] = true
	}
	for _, want := range []string{`warpline_process_reserved_bytes{pid="2147483647",user="",device="0"} 6.2277025792e+10`, `warpline_gpu_power_watts{device="0",kind="card"`,
		"warpline_nvml_up 1\n", `warpline_run_loss{pid="2147483647",task="gpt"} 2.5`, `warpline_run_steps_total{`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "train gpt") {
		t.Error("a command line is told")
	}
}

// TestHang: a library that does not answer is not waited for, and not asked again meanwhile.
func TestHang(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	asked, answer := 0, make(chan struct{})
	s := New()
	s.open = func() (*nvml.Library, error) {
		asked++
		<-answer
		return nil, advice.Failf("load it", "there is none")
	}
	for range 2 {
		if snap := s.Sample(); !strings.Contains(snap.NoCards, "has not answered") || snap.Hint == "" {
			t.Errorf("%+v", snap)
		}
	}
	close(answer)
	for range 100 {
		if snap := s.Sample(); snap.NoCards == "there is none" && snap.Hint == "load it" {
			if asked != 1 {
				t.Errorf("asked %d times", asked)
			}
			return
		}
	}
	t.Error("the answer is not taken")
}

// TestNoCards: without a library there are two lines, and the rest.
func TestNoCards(t *testing.T) {
	s := New()
	s.open = func() (*nvml.Library, error) { return nil, errors.Join(advice.Failf("do this", "no library")) }
	text := View{}.Text(s.Sample())
	if !strings.Contains(text, "no cards: no library\n  do this\n") || !strings.Contains(text, Meaning[:20]) {
		t.Error(text)
	}
}

// TestProc looks at a process of this test.
func TestProc(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("of Linux")
	}
	cmd := exec.Command("sleep", "60")
	before := time.Now()
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	var k known
	for range 200 { // until it is sleep and no copy of this program
		var ok bool
		if k, ok = look(cmd.Process.Pid); ok && k.command == "sleep 60" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if k.command != "sleep 60" || k.parent != os.Getpid() || k.uid != os.Getuid() || k.began.Before(before.Add(-time.Second)) || k.began.After(time.Now().Add(time.Second)) {
		t.Errorf("%+v, begun %v", k, before)
	}
	if all := parents(k.parent); len(all) == 0 || all[0].PID != os.Getpid() {
		t.Errorf("%+v", all)
	}
	if _, ok := look(-1); ok {
		t.Error("-1 is a process")
	}
}

func TestTree(t *testing.T) {
	s := &Snapshot{Processes: []Process{
		{PID: 30, Command: "worker 1", Visible: true, Parents: []Parent{{20, "launcher"}, {10, "shell"}}, Uses: []Use{{Device: "0"}}},
		{PID: 31, Command: "worker 2", Visible: true, Parents: []Parent{{20, "launcher"}, {10, "shell"}}, Uses: []Use{{Device: "1"}}},
		{PID: 11, Command: "alone", Visible: true, Uses: []Use{{Device: "1"}}},
	}}
	var got []string
	for _, line := range strings.Split(View{Tree: true, Width: 140}.processes(s), "\n")[2:] {
		if line != "" {
			got = append(got, line[strings.Index(line, "  "):])
		}
	}
	text := View{Tree: true, Width: 140}.processes(s)
	last := -1
	for _, want := range []string{"shell\n", "└ launcher\n", "  └ worker 1\n", "  └ worker 2\n", "alone\n"} {
		at := strings.Index(text, want)
		if at <= last {
			t.Errorf("%q is at %d, want it after %d:\n%s", want, at, last, strings.Join(got, "\n"))
		}
		last = at
	}
}

package explore

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestArchitecture counts, step by step, that every element gets a core once, on machines of any size.
func TestArchitecture(t *testing.T) {
	r := testutil.Rand(t)
	for range 100 {
		m := Machine{Card: cards.All[r.IntN(len(cards.All))].Name, SMs: 1 + r.IntN(20), CoresPerSM: 1 + r.IntN(100), Shape: []string{"1", "7", "1000", "13x17", "64x64"}[r.IntN(5)], Block: 1 + r.IntN(1024)}
		var done int64
		for {
			a, err := NewArchitecture(m)
			if err != nil {
				t.Fatalf("%+v: %v", m, err)
			}
			sum := 0
			for _, n := range a.BySM {
				sum += n
			}
			if sum != a.Active || a.Active+a.Idle != m.SMs*m.CoresPerSM || len(a.BySM) != m.SMs || slices.Max(a.BySM) > m.CoresPerSM {
				t.Fatalf("%+v: %+v", m, a)
			}
			if done += int64(a.Active); m.Step == a.Steps-1 {
				if done != a.Elements || a.Threads < a.Elements || a.Threads-a.Elements >= int64(m.Block) {
					t.Fatalf("%+v: %d of %d elements", m, done, a.Elements)
				}
				break
			}
			m.Step++
		}
	}
}

// TestRace compares with a race that is run task by task.
func TestRace(t *testing.T) {
	r := testutil.Rand(t)
	for range 100 {
		rs := Runners{CPU: cards.CPUs[r.IntN(len(cards.CPUs))].Name, Card: cards.Default, CPUCores: 1 + r.IntN(20), GPUCores: 1 + r.IntN(300), Tasks: 1 + r.IntN(500), Parallel: float64(r.IntN(101)) / 100, Work: 1e5, Bytes: int64(r.IntN(5000))}
		x, err := NewRace(rs)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*Side{&x.CPU, &x.GPU} {
			free := make([]float64, s.Cores)
			for range x.Parallel {
				i := slices.Index(free, slices.Min(free))
				free[i] += s.Task
			}
			want := float64(x.Serial)*x.CPU.Task + slices.Max(free)
			for _, p := range s.Phases {
				if strings.HasPrefix(p.Name, "copy") || p.Name == "launch" {
					want += p.Seconds
				}
			}
			if math.Abs(s.Elapsed-want) > 1e-9*want {
				t.Errorf("%+v: %s takes %g, want %g", rs, s.Name, s.Elapsed, want)
			}
			before := 0
			for i, f := range s.Frames {
				if f.Completed < before || f.Completed > rs.Tasks || f.Active > s.Cores || i == Frames && f.Completed != rs.Tasks {
					t.Errorf("%+v: %s, frame %d: %+v", rs, s.Name, i, f)
				}
				before = f.Completed
			}
		}
		if n := x.Amdahl.Curve; n[0][1] != 1 || x.Amdahl.Limit != nil && n[len(n)-1][1] > *x.Amdahl.Limit {
			t.Errorf("%+v: %v", rs, n)
		}
	}
}

// TestTransfer: bytes neither come nor go, a way there and back ends as it began, and who is apart gets the library's own error.
func TestTransfer(t *testing.T) {
	m := Move{Card: "rtx-4090", Tensors: []string{"batch=32x3x224x224", "weight=512x512", "bias=512"}, Move: []string{"batch", "bias"}, Pinned: true, NonBlocking: true}
	there, err := NewTransfer(m)
	if err != nil {
		t.Fatal(err)
	}
	if there.HostBytes != 1048576 || there.DeviceBytes != 19269632 || there.TotalBytes != 20318208 || there.HostSeconds >= there.Seconds || len(there.Go) != 2 || len(there.PyTorch) != 2 {
		t.Errorf("%+v", there)
	}
	if there.Error == nil || there.Error.Go != "MatMul: operands on two devices: f32[32,3,224,224] on cuda:0, f32[512,512] on cpu; x.To(env) copies a value, nn.To(env, model) moves a model" {
		t.Errorf("%+v", there.Error)
	}
	m.OnDevice, m.ToHost = there.Device, true
	back, err := NewTransfer(m)
	if err != nil || back.HostBytes != there.TotalBytes || back.DeviceBytes != 0 || back.Error != nil || back.MovedBytes != there.MovedBytes {
		t.Errorf("%+v, %v", back, err)
	}
	m.Pinned = false
	if slow, err := NewTransfer(m); err != nil || slow.Seconds <= back.Seconds || slow.HostSeconds < slow.Seconds {
		t.Errorf("pageable: %+v, %v", slow, err)
	}
	if again, err := NewTransfer(Move{Card: m.Card, Tensors: m.Tensors, Move: m.Move, OnDevice: m.Move}); err != nil || again.MovedBytes != 0 {
		t.Errorf("what is there already moves: %+v, %v", again, err)
	}
}

// TestTimeline: the device never does two things, nothing begins before it was launched, and times add up.
func TestTimeline(t *testing.T) {
	r := testutil.Rand(t)
	for range 200 {
		run := Run{Launch: 0.5 + 50*r.Float64(), Device: 0.5 + 50*r.Float64(), Steps: 1 + r.IntN(40), Every: r.IntN(10)}
		x, err := NewTimeline(run)
		if err != nil {
			t.Fatal(err)
		}
		free, launched := 0.0, map[int]float64{}
		for _, s := range x.Host {
			if s.What == "launch" {
				launched[s.Step] = s.End
			}
		}
		for _, s := range x.Device {
			if s.Start < free || s.Start < launched[s.Step] {
				t.Errorf("%+v: %+v", run, s)
			}
			free = s.End
		}
		if x.True != free || x.Timer > x.True+1e-9 || math.Abs(x.Idle+float64(run.Steps)*run.Device-x.True) > 1e-9*x.True || math.Abs(x.Waits+float64(run.Steps)*run.Launch-x.Timer) > 1e-9*x.True {
			t.Errorf("%+v: %+v", run, x)
		}
	}
}

// TestRefused: what cannot be is an error.
func TestRefused(t *testing.T) {
	good := Runners{CPU: "ryzen-7950x", Card: cards.Default, CPUCores: 1, GPUCores: 1, Tasks: 1, Parallel: 1, Work: 1}
	for name, f := range map[string]func() error{
		"card": func() error { _, err := NewArchitecture(Machine{Card: "a100", Shape: "1", Block: 1}); return err },
		"shape": func() error {
			_, err := NewArchitecture(Machine{Card: cards.Default, Shape: "1x0", Block: 1})
			return err
		},
		"large": func() error {
			_, err := NewArchitecture(Machine{Card: cards.Default, Shape: "9999999999x9999999999", Block: 1})
			return err
		},
		"step": func() error {
			_, err := NewArchitecture(Machine{Card: cards.Default, Shape: "1", Block: 1, Step: 1})
			return err
		},
		"block":  func() error { _, err := NewArchitecture(Machine{Card: cards.Default, Shape: "1"}); return err },
		"cpu":    func() error { r := good; r.CPU = "x"; _, err := NewRace(r); return err },
		"share":  func() error { r := good; r.Parallel = math.NaN(); _, err := NewRace(r); return err },
		"tasks":  func() error { r := good; r.Tasks = 0; _, err := NewRace(r); return err },
		"tensor": func() error { _, err := NewTransfer(Move{Card: cards.Default, Tensors: []string{"A=1"}}); return err },
		"none":   func() error { _, err := NewTransfer(Move{Card: cards.Default}); return err },
		"unknown": func() error {
			_, err := NewTransfer(Move{Card: cards.Default, Tensors: []string{"a=1"}, Move: []string{"b"}})
			return err
		},
		"launch": func() error { _, err := NewTimeline(Run{Device: 1, Steps: 1}); return err },
	} {
		if f() == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if _, err := NewRace(good); err != nil {
		t.Error(err)
	}
}

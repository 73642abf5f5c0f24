package device

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
)

func init() {
	for i, kind := range []string{"cpu", "cuda"} {
		Register(kind, Engine{Rank: 1 + i, Open: openFake})
	}
	Register("settings", Engine{Open: func(Name) (Device, error) { return newFake(1), nil }})
	Register("null", Engine{Cards: []string{"a100-80", "gtx-1650"}, Open: openFake})
}

func openFake(n Name) (Device, error) {
	d := newFake(1 << 30)
	d.info.Name = n.String()
	return d, nil
}

func TestParseName(t *testing.T) {
	for s, want := range map[string]Name{
		"cpu":            {Kind: "cpu"},
		"cpu:0":          {Kind: "cpu"},
		"cuda":           {Kind: "cuda"},
		"cuda:3":         {Kind: "cuda", Index: 3},
		"null:0":         {Kind: "null"},
		"null:a100-80":   {Kind: "null", Card: "a100-80"},
		"null:a100-80:2": {Kind: "null", Card: "a100-80", Index: 2},
		"null:gtx-1650":  {Kind: "null", Card: "gtx-1650"},

		"null:a100-80x4":   {Kind: "null", Card: "a100-80", Count: 4},
		"null:a100-80x4:3": {Kind: "null", Card: "a100-80", Count: 4, Index: 3},
	} {
		got, err := ParseName(s)
		if err != nil || got != want {
			t.Errorf("%q is %+v, %v", s, got, err)
		}
		if again, err := ParseName(got.String()); err != nil || again != got {
			t.Errorf("%q prints as %q, which is %+v, %v", s, got, again, err)
		}
	}
}

func TestBadNames(t *testing.T) {
	for s, want := range map[string]string{
		"":                 "have cpu, cuda, null",
		"tpu":              `no kind "tpu"; have cpu, cuda, null`,
		"null:h900":        `no card "h900"; have a100-80, gtx-1650`,
		"null:a100-80x0":   "no card",
		"null:a100-80x":    "no card",
		"null:a100-80:x":   "no index",
		"null:a100-80x4:4": "index 4 of 4",
		"null:99999999999": "no card",
		"null:1:2":         `no card "1"`,
		"cuda:-1":          "has no cards",
		"cpu:1":            "there is one cpu",
	} {
		if _, err := ParseName(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", s, err, want)
		}
	}
}

func TestOpenShares(t *testing.T) {
	var got [8]Device
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i], _, _ = Open([]string{"cuda", "cuda:0"}[i%2]) })
	}
	wg.Wait()
	for _, d := range got {
		if d == nil || d != got[0] {
			t.Fatalf("%v and %v", d, got[0])
		}
	}
	if d, name, err := Open("cuda:1"); err != nil || d == got[0] || name != "cuda:1" {
		t.Error(d, name, err)
	}
	if _, name, _ := Open("cuda"); name != "cuda:0" {
		t.Error(name)
	}
	if got := preferred(); !slices.Equal(got, []string{"cuda", "cpu"}) {
		t.Error(got)
	}
}

func TestOpenTriesAgain(t *testing.T) {
	fails := errors.New("no driver")
	Register("flaky", Engine{Open: func(n Name) (Device, error) {
		if fails != nil {
			return nil, fails
		}
		return openFake(n)
	}})
	defer func() {
		registry.Lock()
		delete(registry.engines, "flaky")
		delete(registry.devices, Name{Kind: "flaky"})
		registry.Unlock()
	}()
	if _, _, err := Open("flaky"); !errors.Is(err, fails) || !strings.Contains(err.Error(), "flaky:0") {
		t.Error(err)
	}
	fails = nil
	if _, _, err := Open("flaky"); err != nil {
		t.Error(err)
	}
	mustPanic(t, "registered twice", func() { Register("cpu", Engine{}) })
}

func FuzzParseName(f *testing.F) {
	for _, s := range []string{"cpu", "cuda:1", "null:a100-80x4:2", "null:x:", "::"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseName(s)
		if err != nil {
			return
		}
		if again, err := ParseName(n.String()); err != nil || again != n {
			t.Errorf("%q prints as %q, which is %+v, %v", s, n, again, err)
		}
	})
}

package lessons

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

// short are numbers with which programs are quick on a simulated GPU.
var short = map[string]int{"batch": 2, "tokens": 4, "rows": 64, "columns": 32, "runs": 3, "warmup": 1, "mib": 1, "n": 4, "rounds": 1, "active": 1}

func (l *Listing) shortened() Numbers {
	n := l.Values()
	for k := range n {
		if v, ok := short[k]; ok {
			n[k] = v
		}
	}
	return n
}

// output is what a program prints on a device.
func output(t *testing.T, p Program, device string, n Numbers) string {
	t.Helper()
	env, err := tensor.Fresh(device)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	env.Do(func(env *tensor.Env) *tensor.Tensor {
		err = p(env, n, &b)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// programs calls f for each program of the listings, right and wrong.
func programs(t *testing.T, f func(t *testing.T, l *Listing, name string, p Program)) {
	for i := range Listings {
		l := &Listings[i]
		if l.Run != nil {
			t.Run(l.ID, func(t *testing.T) { f(t, l, l.ID, l.Run) })
		}
		if l.Wrong != nil {
			t.Run(l.Wrong.Name, func(t *testing.T) { f(t, l, l.Wrong.Name, l.Wrong.Run) })
		}
	}
}

// TestOutput: programs print what they are documented with.
func TestOutput(t *testing.T) {
	programs(t, func(t *testing.T, l *Listing, name string, p Program) {
		testutil.Golden(t, filepath.Join("testdata", name+".txt"), []byte(output(t, p, "cpu", l.Values())))
	})
}

// TestDevices: programs print the same on a simulated GPU.
func TestDevices(t *testing.T) {
	programs(t, func(t *testing.T, l *Listing, name string, p Program) {
		n := l.shortened()
		if cpu, sim := output(t, p, "cpu", n), output(t, p, "sim:0", n); cpu != sim {
			t.Errorf("cpu says %q, sim:0 says %q", cpu, sim)
		}
	})
}

// TestListings: ids L01 to L34 in order, each with a program or the reason why not, and numbers within their bounds.
func TestListings(t *testing.T) {
	if len(Listings) != 34 {
		t.Fatalf("%d listings", len(Listings))
	}
	for i, l := range Listings {
		if want := "L" + string([]byte{byte('0' + (i+1)/10), byte('0' + (i+1)%10)}); l.ID != want || l.Title == "" {
			t.Errorf("%s %q in place of %s", l.ID, l.Title, want)
		}
		if (l.Run == nil) != (l.Absent != "") {
			t.Errorf("%s has neither a program nor a reason, or both", l.ID)
		}
		for _, n := range l.Numbers {
			if n.Value < n.Min || n.Value > n.Max || n.What == "" {
				t.Errorf("%s: %+v", l.ID, n)
			}
		}
		if found, ok := Find(l.ID); !ok || found.ID != l.ID {
			t.Errorf("%s is not found", l.ID)
		}
	}
}

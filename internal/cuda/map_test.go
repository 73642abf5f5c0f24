package cuda_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// two opens two devices of a machine.
func two(t *testing.T, c simcuda.Config) (*simcuda.System, [2]*cuda.Device) {
	t.Helper()
	c.Devices = 2
	s, err := simcuda.New(c)
	if err != nil {
		t.Fatal(err)
	}
	api := s.API()
	var all [2]*cuda.Device
	for i := range all {
		if all[i], err = cuda.New(api, i, []string{"sim:0", "sim:1"}[i], cuda.Options{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := all[i].Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return s, all
}

// TestMapping runs the caching allocator over a card's pages until it is full, with copies in and out of what it hands out, from
// another card too.
func TestMapping(t *testing.T) {
	s, devices := two(t, simcuda.Config{Checks: gpusim.AllChecks})
	d, r := devices[0], testutil.Rand(t)
	if !d.Maps() {
		t.Fatal("the card cannot map memory")
	}
	q, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	other, err := devices[1].NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	peer, _ := device.As[device.Peer](other)
	host, err := hostmem.Alloc(64)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Free()
	there, err := devices[1].Alloc(64)
	if err != nil {
		t.Fatal(err)
	}
	hostArg := device.Arg{Mem: device.Mem{Addr: uint64(host.Addr), Size: 64, Host: true}}
	a := device.NewAllocator(d, device.Config{Conf: device.Conf{Expandable: true}})
	a.SetLimit(70 << 20)
	type held struct {
		b *device.Block
		v byte
	}
	var live []held
	check := func(h held) {
		t.Helper()
		src := device.Arg{Mem: h.b.Mem()}
		if h.v%2 == 0 {
			if ok, err := peer.CopyFrom(device.Arg{Mem: there}, d, src, 64); !ok || err != nil {
				t.Fatal(ok, err)
			}
			if err := errors.Join(other.Copy(hostArg, device.Arg{Mem: there}, 64), other.Sync()); err != nil {
				t.Fatal(err)
			}
		} else if err := errors.Join(q.Copy(hostArg, src, 64), q.Sync()); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(host.Bytes(), func(v byte) bool { return v != h.v }) {
			t.Fatalf("%v holds %d, want %d", h.b, host.Bytes(), h.v)
		}
	}
	ooms := 0
	for i := range 300 {
		if len(live) > 0 && r.IntN(4) == 0 {
			j := r.IntN(len(live))
			check(live[j])
			a.Free(live[j].b)
			live = slices.Delete(live, j, j+1)
			continue
		}
		b, err := a.Alloc(64+r.Int64N(1<<(8+r.IntN(18))), 0)
		if errors.Is(err, device.ErrOutOfMemory) {
			ooms++
			for _, h := range live[:len(live)/2] {
				a.Free(h.b)
			}
			live = live[len(live)/2:]
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		h := held{b, byte(i)}
		for j := range host.Bytes() {
			host.Bytes()[j] = h.v
		}
		if err := errors.Join(q.Copy(device.Arg{Mem: b.Mem()}, hostArg, 64), q.Sync()); err != nil {
			t.Fatal(err)
		}
		live = append(live, h)
	}
	for _, h := range live {
		check(h)
		a.Free(h.b)
	}
	if err := errors.Join(a.Check(), a.EmptyCache(), q.Close(), other.Close()); err != nil || ooms == 0 || a.Stats().ReservedBytes.All.Current != 0 {
		t.Error(err, ooms, a.Stats().ReservedBytes.All.Current)
	}
	devices[1].Free(there)
	if f := s.Findings(); len(f) > 0 {
		t.Error(f)
	}
}

// TestMappingFails: what a card has no room for leaves nothing behind, at any page; nor what the driver refuses.
func TestMappingFails(t *testing.T) {
	const page = 2 << 20
	s, devices := two(t, simcuda.Config{})
	d := devices[0]
	before, _ := d.Unused()
	at, err := d.Reserve(8 * page)
	if err != nil {
		t.Fatal(err)
	}
	for k := 1; k <= 4; k++ {
		s.FailAllocation(k)
		if err := d.Map(at, 4*page, page); !errors.Is(err, device.ErrOutOfMemory) {
			t.Errorf("page %d: %v", k, err)
		}
		if now, _ := d.Unused(); now != before {
			t.Errorf("page %d: %d bytes are left", k, before-now)
		}
	}
	if err := d.Map(at, 4*page, page); err != nil {
		t.Fatal(err)
	}
	var refused *driver.Error
	for what, err := range map[string]error{"mapped": d.Map(at, page, page), "free": d.Unmap(at+4*page, page), "part": d.Unmap(at, page/2),
		"beyond": d.Map(at+8*page, page, page), "reserved": d.Unreserve(at, 8*page), "none": d.Unreserve(at+page, page)} {
		if !errors.As(err, &refused) || errors.Is(err, device.ErrOutOfMemory) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := d.Reserve(1 << 46); !errors.Is(err, device.ErrOutOfMemory) {
		t.Error(err)
	}
	if d.Map(at+4*page, page, 3) == nil {
		t.Error("a page of 3 bytes")
	}
	if err := errors.Join(d.Unmap(at, 4*page), d.Unreserve(at, 8*page)); err != nil {
		t.Error(err)
	}
	if now, _ := d.Unused(); now != before {
		t.Errorf("%d bytes are left", before-now)
	}
}

// TestNoMapping: a driver without the functions, or a card that says no, cannot map; nor is anything called then.
func TestNoMapping(t *testing.T) {
	c := new(counting)
	api := c.api()
	d, err := cuda.New(api, 0, "cuda:0", cuda.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d.Maps() {
		t.Error("a card without the attribute maps")
	}
	api.DeviceGetAttribute = func(driver.Attribute, driver.Device) (int, driver.Result) { return 1, driver.Success }
	api.MemGetAllocationGranularity = func(driver.Device, driver.Granularity) (int64, driver.Result) {
		return 0, driver.NeedsNewerDriver
	}
	if d.Maps() {
		t.Error("a driver without the functions maps")
	}
}

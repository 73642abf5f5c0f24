package simcuda

import (
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/testutil"
)

const page = gpusim.Granularity

func (r *rig) reserve(device int, bytes int64) (p driver.Ptr) {
	r.t.Helper()
	r.do(device, func() (res driver.Result) { p, res = r.api.MemAddressReserve(bytes, 0, 0); return res })
	return p
}

func (r *rig) create(device int, bytes int64) (h driver.MemHandle) {
	r.t.Helper()
	r.do(device, func() (res driver.Result) { h, res = r.api.MemCreate(bytes, driver.Device(device)); return res })
	return h
}

// back puts new memory of so many bytes behind an address, open, and lets the handle go.
func (r *rig) back(device int, p driver.Ptr, bytes int64) {
	r.t.Helper()
	h := r.create(device, bytes)
	r.do(device, func() driver.Result { return r.api.MemMap(p, bytes, 0, h) })
	r.do(device, func() driver.Result { return r.api.MemRelease(h) })
	r.do(device, func() driver.Result {
		return r.api.MemSetAccess(p, bytes, driver.Device(device), driver.AccessReadWrite)
	})
}

func (r *rig) free() (free int64) {
	r.t.Helper()
	r.do(0, func() (res driver.Result) { free, _, res = r.api.MemGetInfo(); return res })
	return free
}

// TestVirtual: pieces of memory side by side are one for kernels and copies; only they count; a handle keeps what was written.
func TestVirtual(t *testing.T) {
	for _, text := range []string{"", "check=all", "check=all,late"} {
		c, err := ParseConfig(text)
		if err != nil {
			t.Fatal(err)
		}
		r := newRig(t, c)
		before := r.free()
		p := r.reserve(0, 90<<30) // more than the card has
		if r.free() != before || p%page != 0 {
			t.Error("addresses count as memory")
		}
		h := r.create(0, page)
		r.do(0, func() driver.Result { return r.api.MemMap(p+page, page, 0, h) })
		r.do(0, func() driver.Result { return r.api.MemSetAccess(p+page, page, 0, driver.AccessReadWrite) })
		r.back(0, p, page)
		r.back(0, p+2*page, 2*page)
		if got := before - r.free(); got != 4*page {
			t.Errorf("%d bytes are taken, want %d", got, 4*page)
		}
		const n = page/4 + 1000 // floats, across three pieces
		x := floats(n, func(i int) float32 { return float32(i) })
		at := p + page - 1000
		r.do(0, func() driver.Result { return r.api.MemcpyHtoD(at, r.address(x), 4*n) })
		f := r.kernel(0, "scale")
		r.do(0, func() driver.Result { return r.api.LaunchKernelEx(line(500, 0), f, pack(at, uint32(500))) })
		want := slices.Clone(x)
		for i := range 500 {
			want[i] *= 2
		}
		if got := r.download(0, at, n); !slices.Equal(got, want) {
			t.Error("a kernel's values across pieces of memory are wrong")
		}
		// The second piece moves behind the others.
		r.do(0, func() driver.Result { return r.api.MemUnmap(p+page, page) })
		r.fails(driver.InvalidValue, 0, "addresses without memory any more", func() driver.Result { return r.api.MemcpyDtoH(r.address(x), at, 4*n) })
		r.do(0, func() driver.Result { return r.api.MemMap(p+8*page, page, 0, h) })
		r.do(0, func() driver.Result { return r.api.MemRelease(h) })
		r.do(0, func() driver.Result { return r.api.MemSetAccess(p+8*page, page, 0, driver.AccessReadWrite) })
		if got := r.download(0, p+8*page, page/4); !slices.Equal(got, want[250:][:page/4]) {
			t.Error("memory that was mapped elsewhere is not what it was")
		}
		r.do(0, func() driver.Result { return r.api.MemUnmap(p+8*page, page) })
		r.do(0, func() driver.Result { return r.api.MemUnmap(p+2*page, 2*page) })
		r.do(0, func() driver.Result { return r.api.MemUnmap(p, page) })
		r.do(0, func() driver.Result { return r.api.MemAddressFree(p, 90<<30) })
		if r.free() != before {
			t.Errorf("%d bytes are left", before-r.free())
		}
	}
}

// TestVirtualAccess: a kernel that touches addresses without memory, or memory without access, is stopped, and told which.
func TestVirtualAccess(t *testing.T) {
	for _, c := range []struct {
		explain string
		prepare func(r *rig, p driver.Ptr)
	}{
		{"addresses without memory", func(*rig, driver.Ptr) {}},
		{"mapped without access", func(r *rig, p driver.Ptr) {
			h := r.create(0, page)
			r.do(0, func() driver.Result { return r.api.MemMap(p, page, 0, h) })
		}},
		{"mapped without access", func(r *rig, p driver.Ptr) {
			r.back(0, p, page)
			r.do(0, func() driver.Result { return r.api.MemSetAccess(p, page, 0, driver.AccessNone) })
		}},
		{"addresses without memory any more", func(r *rig, p driver.Ptr) {
			r.back(0, p, page)
			r.do(0, func() driver.Result { return r.api.MemUnmap(p, page) })
		}},
		{"freed by MemAddressFree", func(r *rig, p driver.Ptr) {
			r.do(0, func() driver.Result { return r.api.MemAddressFree(p, 4*page) })
		}},
	} {
		r := newRig(t, Config{Checks: gpusim.AllChecks})
		p := r.reserve(0, 4*page)
		c.prepare(r, p)
		f := r.kernel(0, "scale")
		r.fails(driver.IllegalAddress, 0, c.explain, func() driver.Result {
			r.api.LaunchKernelEx(line(32, 0), f, pack(p, uint32(32)))
			return r.api.CtxSynchronize()
		})
	}
}

// TestVirtualUnwritten: new memory counts as unwritten, as that of an allocation does, and what was mapped before is not seen.
func TestVirtualUnwritten(t *testing.T) {
	r := newRig(t, Config{Checks: gpusim.AllChecks})
	p := r.reserve(0, page)
	f := r.kernel(0, "scale")
	launch := func() driver.Result {
		r.api.LaunchKernelEx(line(32, 0), f, pack(p, uint32(32)))
		return r.api.CtxSynchronize()
	}
	r.back(0, p, page)
	r.do(0, func() driver.Result { return r.api.MemsetD8Async(p, 0, page, 0) })
	r.do(0, launch)
	r.do(0, func() driver.Result { return r.api.MemUnmap(p, page) })
	r.back(0, p, page)
	r.fails(driver.LaunchFailed, 0, "never written", launch)
}

// TestVirtualRefusals is by function: what makes a call fail, how, and what Explain says. Nothing has changed after.
func TestVirtualRefusals(t *testing.T) {
	r := newRig(t, Config{Devices: 2})
	a := r.api
	p, plain := r.reserve(0, 8*page), r.alloc(0, 4*page)
	r.back(0, p, 2*page)
	h, far, gone := r.create(0, page), r.create(1, page), r.create(0, page)
	r.do(0, func() driver.Result { return a.MemRelease(gone) })
	placed := r.create(0, page)
	r.do(0, func() driver.Result { return a.MemMap(p+4*page, page, 0, placed) })
	reserve := func(n, align int64) func() driver.Result {
		return func() driver.Result { _, res := a.MemAddressReserve(n, align, 0); return res }
	}
	create := func(n int64, d driver.Device) func() driver.Result {
		return func() driver.Result { _, res := a.MemCreate(n, d); return res }
	}
	mapAt := func(p driver.Ptr, n, off int64, h driver.MemHandle) func() driver.Result {
		return func() driver.Result { return a.MemMap(p, n, off, h) }
	}
	access := func(p driver.Ptr, n int64, d driver.Device, m driver.Access) func() driver.Result {
		return func() driver.Result { return a.MemSetAccess(p, n, d, m) }
	}
	before := r.free()
	const bad = driver.InvalidValue
	for _, c := range []struct {
		name    string
		want    driver.Result
		explain string
		call    func() driver.Result
	}{
		{"granularity of no device", driver.InvalidDevice, "no device", func() driver.Result { _, res := a.MemGetAllocationGranularity(2, 0); return res }},
		{"granularity of no kind", bad, "there are 0 and 1", func() driver.Result { _, res := a.MemGetAllocationGranularity(0, 2); return res }},
		{"reserve 0", bad, "multiple of", reserve(0, 0)},
		{"reserve part of a page", bad, "multiple of", reserve(4097, 0)},
		{"reserve aligned to 3", bad, "power of two", reserve(page, 3)},
		{"reserve all", driver.OutOfMemory, "at their end", reserve(1<<46, 0)},
		{"give back a part", bad, "goes as a whole", func() driver.Result { return a.MemAddressFree(p+7*page, page) }},
		{"give back with memory", bad, "are mapped there", func() driver.Result { return a.MemAddressFree(p, 8*page) }},
		{"give back an allocation", bad, "not all of one reservation", func() driver.Result { return a.MemAddressFree(plain, 4*page) }},
		{"give back nothing", bad, "no reservation", func() driver.Result { return a.MemAddressFree(8, page) }},
		{"create 0", bad, "multiple of the granularity", create(0, 0)},
		{"create part", bad, "multiple of the granularity", create(page+4096, 0)},
		{"create too much", driver.OutOfMemory, "in use", create(81<<30, 0)},
		{"create on no device", driver.InvalidDevice, "no device", create(page, 7)},
		{"release twice", bad, "no memory with the handle", func() driver.Result { return a.MemRelease(gone) }},
		{"map where memory is", bad, "where memory is mapped", mapAt(p+page, page, 0, h)},
		{"map a part of a page", bad, "multiples of the granularity", mapAt(p+2*page+4096, page, 0, h)},
		{"map part of the memory", bad, "whole", mapAt(p+2*page, page, page, h)},
		{"map more than there is", bad, "whole", mapAt(p+2*page, 2*page, 0, h)},
		{"map beyond the reservation", bad, "not all of one reservation", mapAt(p+7*page, 2*page, 0, h)},
		{"map what is released", bad, "no memory with the handle", mapAt(p+2*page, page, 0, gone)},
		{"map over an allocation", bad, "not all of one reservation", mapAt(plain, page, 0, h)},
		{"map at no address", bad, "no reservation", mapAt(8, page, 0, h)},
		{"map twice", driver.NotSupported, "one place", mapAt(p+2*page, page, 0, placed)},
		{"map another device's", driver.NotSupported, "memory of device 1", mapAt(p+2*page, page, 0, far)},
		{"unmap a part", bad, "cut memory", func() driver.Result { return a.MemUnmap(p, page) }},
		{"unmap nothing", bad, "not all mapped", func() driver.Result { return a.MemUnmap(p+2*page, page) }},
		{"unmap with a gap", bad, "not all mapped", func() driver.Result { return a.MemUnmap(p, 5*page) }},
		{"open nothing", bad, "not all mapped", access(p+2*page, page, 0, driver.AccessReadWrite)},
		{"open a part", bad, "cut memory", access(p+page, page, 0, driver.AccessReadWrite)},
		{"open to no device", driver.InvalidDevice, "no device", access(p, 2*page, 9, driver.AccessReadWrite)},
		{"open in an unknown way", bad, "there are 0, 1 and 3", access(p, 2*page, 0, 2)},
		{"open for reading", driver.NotSupported, "both or none", access(p, 2*page, 0, driver.AccessRead)},
		{"open nothing to a peer", bad, "not all mapped", access(p+2*page, page, 1, driver.AccessReadWrite)},
		{"free a reservation", bad, "not the start", func() driver.Result { return a.MemFree(p) }},
		{"copy beyond what is mapped", bad, "addresses without memory", func() driver.Result { return a.MemcpyDtoD(p+2*page, p, 64) }},
		{"annotate what is not mapped", bad, "not all mapped with access", func() driver.Result { return a.Annotate(p+page, 2*page, driver.Fresh, 0, "here") }},
		{"annotate what is not open", bad, "not all mapped with access", func() driver.Result { return a.Annotate(p+4*page, page, driver.Fresh, 0, "here") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.t = t
			r.fails(c.want, 0, c.explain, c.call)
		})
	}
	r.t = t
	if r.free() != before {
		t.Errorf("%d bytes are gone", before-r.free())
	}
	r.do(0, mapAt(p+2*page, page, 0, h))
	r.do(0, access(p, 3*page, 0, driver.AccessReadWrite))
	r.do(0, access(p, 3*page, 1, driver.AccessReadWrite))
	r.do(0, func() driver.Result { return a.MemUnmap(p, 3*page) })
}

// TestVirtualRandom maps, opens, annotates and unmaps at random, and compares with a model of the pages which bytes can be read.
func TestVirtualRandom(t *testing.T) {
	rnd := testutil.Rand(t)
	r := newRig(t, Config{})
	const pages = 12
	p := r.reserve(0, pages*page)
	type piece struct {
		n    int
		open bool
	}
	pieces := map[int]piece{} // by first page
	state := make([]int, pages)
	set := func(at, n, s int) {
		for i := range n {
			state[at+i] = s
		}
	}
	var b [4]byte
	for range 600 {
		at, n := rnd.IntN(pages), 1+rnd.IntN(3)
		m, here := pieces[at]
		ptr := p + driver.Ptr(at*page)
		switch rnd.IntN(3) {
		case 0:
			if at+n <= pages && !slices.ContainsFunc(state[at:at+n], func(s int) bool { return s != 0 }) {
				h := r.create(0, int64(n*page))
				r.do(0, func() driver.Result { return r.api.MemMap(ptr, int64(n*page), 0, h) })
				r.do(0, func() driver.Result { return r.api.MemRelease(h) })
				pieces[at] = piece{n: n}
				set(at, n, 1)
			}
		case 1:
			if here {
				m.open = !m.open
				to := map[bool]driver.Access{true: driver.AccessReadWrite}[m.open]
				r.do(0, func() driver.Result { return r.api.MemSetAccess(ptr, int64(m.n*page), 0, to) })
				pieces[at] = m
				set(at, m.n, map[bool]int{false: 1, true: 2}[m.open])
			}
		default:
			if here {
				r.do(0, func() driver.Result { return r.api.MemUnmap(ptr, int64(m.n*page)) })
				delete(pieces, at)
				set(at, m.n, 0)
			}
		}
		probe := rnd.IntN(pages)
		got := r.api.Do(r.ctx[0], func() driver.Result {
			return r.api.MemcpyDtoH(r.address(b[:]), p+driver.Ptr(probe*page+rnd.IntN(page-4)), 4)
		})
		if (got == driver.Success) != (state[probe] == 2) {
			t.Fatalf("page %d in state %d: %v", probe, state[probe], got)
		}
		from, to := rnd.IntN(pages), 1+rnd.IntN(pages)
		to = min(from+to, pages)
		open := !slices.ContainsFunc(state[from:to], func(s int) bool { return s != 2 })
		got = r.api.Do(r.ctx[0], func() driver.Result {
			return r.api.MemsetD8Async(p+driver.Ptr(from*page), 3, int64((to-from)*page), 0)
		})
		if (got == driver.Success) != open {
			t.Fatalf("pages %d to %d in states %v: %v", from, to, state[from:to], got)
		}
	}
}

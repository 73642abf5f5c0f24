package gpusim

import (
	"fmt"
	"strings"
	"testing"
)

// hopperOptions are schedules and checks under which a correct kernel has one result and no finding.
var hopperOptions = []Options{{}, {Seed: 4}, {Checks: AllChecks}, {Checks: AllChecks, Seed: 3}, {Checks: AllChecks, Schedule: Independent, Seed: 9}}

// waitFor is a loop that waits for a phase of the mbarrier at an address.
func waitFor(label, at string, parity int) string {
	return fmt.Sprintf("%s: mbarrier.try_wait.parity.shared::cta.b64 %%p, [%s], %d;\n@!%%p bra %s;\n", label, at, parity, label)
}

const hopperRegs = ".reg .b64 %in, %out, %a, %b, %state; .reg .b32 %t, %i, %j, %s, %v, %w, %x, %rank, %bar; .reg .pred %p, %q, %first; .reg .b16 %h;\n"

// hopperKernel is a kernel with threads' numbers in %t, whether it is the first in %first, and the addresses of an mbarrier and
// of 16 KiB behind it in shared memory in %bar and %s.
func hopperKernel(directives, body string) string {
	return hopperHead + ".visible .entry k(.param .u64 in, .param .u64 out)\n" + directives + "\n{\n" + hopperRegs +
		".shared .align 1024 .b8 buf[16384]; .shared .align 8 .b8 bars[64];\n" +
		"ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0; mov.u32 %bar, bars; mov.u32 %s, buf; mov.u32 %rank, %cluster_ctarank;\n" +
		body + "\nret;\n}\n"
}

// initBarrier makes the mbarrier for so many arrivals.
func initBarrier(count int) string {
	return fmt.Sprintf("@%%first mbarrier.init.shared::cta.b64 [%%bar], %d;\n@%%first fence.mbarrier_init.release.cluster;\nbar.sync 0;\n", count)
}

func words(n int) []uint32 {
	list := make([]uint32, n)
	for i := range list {
		list[i] = uint32(i*7 + 1)
	}
	return list
}

// TestBulkCopies: what comes by one copy goes on by another, through shared memory.
func TestBulkCopies(t *testing.T) {
	const n = 1024 // words
	body := initBarrier(1) + "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 4096;\n" +
		"@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%in], 4096, [%bar];\n" + waitFor("W", "%bar", 0) +
		"shl.b32 %i, %t, 2; add.u32 %i, %i, %s;\nL: ld.shared.b32 %v, [%i]; add.u32 %v, %v, 5; st.shared.b32 [%i], %v; add.u32 %i, %i, 256; add.u32 %j, %s, 4096; setp.lt.u32 %p, %i, %j; @%p bra L;\n" +
		"fence.proxy.async.shared::cta; bar.sync 0;\n@!%first bra END;\ncp.async.bulk.global.shared::cta.bulk_group [%out], [%s], 2048;\n" +
		"add.u64 %out, %out, 2048; add.u32 %s, %s, 2048;\ncp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [%s], 2048;\n" +
		"cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nEND:"
	for _, o := range hopperOptions {
		r := hopper(t, hopperKernel("", body))
		out := r.upload(words(n), "out")
		r.launch("k", d1(1), d1(64), o, r.upload(words(n), "in"), out)
		for i, v := range download[uint32](r, out, n) {
			want := uint32(i*7 + 6)
			if i >= 512 {
				want += uint32(i*7 + 1)
			}
			if v != want {
				t.Fatalf("%+v: word %d is %d, want %d", o, i, v, want)
			}
		}
	}
}

// TestClusters: blocks of a cluster know their places, reach each other's memory and wait for each other.
func TestClusters(t *testing.T) {
	// Each block stores to the next one's memory, by mapa or by a bulk copy, and reads its own after the barrier.
	remote := map[string]string{
		"stores": "add.u32 %i, %rank, 1; rem.u32 %i, %i, 4; mapa.shared::cluster.u32 %j, %s, %i; shl.b32 %v, %t, 2; add.u32 %j, %j, %v; mad.lo.u32 %v, %rank, 1000, %t;\n" +
			"barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; st.shared::cluster.u32 [%j], %v;\nbarrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n",
		"generic": "add.u32 %i, %rank, 1; rem.u32 %i, %i, 4; cvt.u64.u32 %a, %s; cvta.shared.u64 %a, %a; mapa.u64 %a, %a, %i; mul.wide.u32 %b, %t, 4; add.u64 %a, %a, %b; mad.lo.u32 %v, %rank, 1000, %t;\n" +
			"barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; st.u32 [%a], %v;\nbarrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n",
		"copies": initBarrier(1) + "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 256;\nbarrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n" +
			"shl.b32 %v, %t, 2; add.u32 %j, %s, %v; mad.lo.u32 %v, %rank, 1000, %t; st.shared.u32 [%j+1024], %v; fence.proxy.async.shared::cta; bar.sync 0;\n" +
			"add.u32 %i, %rank, 1; rem.u32 %i, %i, 4; mapa.shared::cluster.u32 %w, %bar, %i; mapa.shared::cluster.u32 %j, %s, %i; add.u32 %v, %s, 1024;\n" +
			"@%first cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%j], [%v], 256, [%w];\n" + waitFor("W", "%bar", 0),
		"arrivals": initBarrier(64) + "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n" +
			"add.u32 %i, %rank, 1; rem.u32 %i, %i, 4; mapa.shared::cluster.u32 %w, %bar, %i; mapa.shared::cluster.u32 %j, %s, %i; shl.b32 %v, %t, 2; add.u32 %j, %j, %v; mad.lo.u32 %v, %rank, 1000, %t;\n" +
			"st.shared::cluster.u32 [%j], %v; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%w];\n" + waitFor("W", "%bar", 0) + "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n",
	}
	for name, body := range remote {
		for _, o := range hopperOptions {
			if o.Schedule == Independent && name == "generic" {
				continue // the barriers are for whole warps
			}
			r := hopper(t, hopperKernel(".explicitcluster\n.reqnctapercluster 2, 2, 1", body+
				"shl.b32 %v, %t, 2; add.u32 %i, %s, %v; ld.shared.u32 %w, [%i];\nmov.u32 %i, %clusterid.y; mov.u32 %j, %nclusterid.x; mov.u32 %v, %clusterid.x; mad.lo.u32 %i, %i, %j, %v;\n"+
				"shl.b32 %i, %i, 2; add.u32 %i, %i, %rank; shl.b32 %i, %i, 6; add.u32 %i, %i, %t; mul.wide.u32 %a, %i, 4; add.u64 %out, %out, %a; st.global.u32 [%out], %w;\n"+
				"barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"))
			out := r.alloc(4*6*4*64, "out")
			r.launch("k", [3]int{4, 6, 1}, d1(64), o, uint64(0), out)
			for i, v := range download[uint32](r, out, 6*4*64) {
				rank := i / 64 % 4
				if want := uint32((rank+3)%4*1000 + i%64); v != want {
					t.Fatalf("%s, %+v: thread %d of rank %d of cluster %d has %d, want %d", name, o, i%64, rank, i/256, v, want)
				}
			}
		}
	}
}

// TestMulticast: one block's copy arrives in all blocks of the mask, and completes on the mbarrier of each.
func TestMulticast(t *testing.T) {
	body := initBarrier(1) + "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 512;\nbarrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n" +
		"setp.eq.u32 %q, %rank, 1; and.pred %q, %q, %first; mov.b16 %h, 5;\n" +
		"@%q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%s], [%in], 512, [%bar], %h;\n" +
		"and.b32 %v, %rank, 1; setp.eq.u32 %q, %v, 1; @%q bra OUT;\n" + waitFor("W", "%bar", 0) +
		"shl.b32 %v, %t, 2; add.u32 %i, %s, %v; ld.shared.u32 %w, [%i]; shl.b32 %i, %rank, 6; add.u32 %i, %i, %t; mul.wide.u32 %a, %i, 4; add.u64 %out, %out, %a; st.global.u32 [%out], %w;\n" +
		"OUT: barrier.cluster.arrive; barrier.cluster.wait;"
	for _, o := range hopperOptions {
		r := hopper(t, hopperKernel("", body))
		out := r.upload(make([]uint32, 4*64), "out")
		o.Cluster = [3]int{4, 1, 1}
		r.launch("k", d1(4), d1(64), o, r.upload(words(128), "in"), out)
		for i, v := range download[uint32](r, out, 4*64) {
			want := uint32(i%64*7 + 1)
			if i/64%2 == 1 {
				want = 0
			}
			if v != want {
				t.Fatalf("%+v: word %d is %d, want %d", o, i, v, want)
			}
		}
	}
}

// TestClusterRefuses: launches that no card would take.
func TestClusterRefuses(t *testing.T) {
	for _, c := range []struct {
		directives   string
		grid, blocks [3]int
		says         string
	}{
		{"", [3]int{3, 1, 1}, [3]int{2, 1, 1}, "dimension 0 is no multiple"},
		{"", [3]int{9, 1, 1}, [3]int{9, 1, 1}, "more than 8"},
		{".reqnctapercluster 2", [3]int{4, 1, 1}, [3]int{4, 1, 1}, "compiled for [2 1 1]"},
		{".explicitcluster", [3]int{4, 1, 1}, [3]int{}, "must have the dimensions"},
	} {
		r := hopper(t, hopperKernel(c.directives, ""))
		_, err := r.try("k", c.grid, d1(32), Options{Cluster: c.blocks}, uint64(0), uint64(0))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

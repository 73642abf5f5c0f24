package gpusim

import (
	"strings"
	"testing"
)

// TestPlantedInClusters: what blocks of a cluster do to each other's shared memory. %i is a thread's own place, %j that in the other
// block.
func TestPlantedInClusters(t *testing.T) {
	const (
		sync  = "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;\n"
		peer  = "xor.b32 %x, %rank, 1; mapa.shared::cluster.u32 %j, %s, %x; shl.b32 %v, %t, 2; add.u32 %j, %j, %v; add.u32 %i, %s, %v;\n"
		first = "@%first "
		// Blocks tell each other by a word 1024 bytes behind.
		zero    = "st.shared.u32 [%i+1024], 0;\n" + sync
		wait    = "L: ld.relaxed.cluster.shared.u32 %w, [%s+1024]; setp.eq.u32 %p, %w, 0; @%p bra L;\nfence.acq_rel.cluster;\n"
		flag    = zero + "st.shared::cluster.u32 [%j], %t;\nbar.sync 0;\n" + first + "fence.acq_rel.cluster;\n" + first + "st.relaxed.cluster.shared::cluster.u32 [%j+1024], 1;\n" + wait + "ld.shared.u32 %w, [%i];\n" + sync
		home    = "mov.u32 %x, 0; mapa.shared::cluster.u32 %x, %s, %x;\n" // the memory of rank 0
		arrival = "st.shared::cluster.u32 [%j], %t;\nmapa.shared::cluster.u32 %x, %bar, %x; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%x];\n"
		expect  = first + "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 256;\n"
		roles   = "setp.eq.u32 %q, %rank, 0; and.pred %q, %q, %first; mov.b16 %h, 3;\n"
		cast    = "@%q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%s], [%in], 256, [%bar], %h;\n"
		empty   = first + "mbarrier.init.shared::cta.b64 [%bar+8], 128;\n"
		read    = "shl.b32 %v, %t, 2; add.u32 %i, %s, %v; ld.shared.u32 %w, [%i];\n"
		release = "mov.u32 %x, 0; mapa.shared::cluster.u32 %x, %bar, %x; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%x+8];\n"
	)
	again := "@!%q bra R;\n" + strings.Replace(waitFor("E1", "%bar+8", 0), "shared::cta", "shared", 1) + "R:\n"
	ring := empty + initBarrier(1) + roles + sync + expect + cast + waitFor("W", "%bar", 0) + read + release + expect + again + cast + waitFor("X", "%bar", 1) + "ld.shared.u32 %w, [%i];\n" + sync
	send := initBarrier(1) + expect + peer + "st.shared.u32 [%i+1024], %t; fence.proxy.async.shared::cta; bar.sync 0;\n" + sync +
		"mapa.shared::cluster.u32 %w, %bar, %x; mapa.shared::cluster.u32 %j, %s, %x; add.u32 %v, %s, 1024;\n" +
		first + "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%j], [%v], 256, [%w];\n" + waitFor("W", "%bar", 0) + "ld.shared.u32 %w, [%i];\n" + sync + "st.shared.u32 [%i+1024], 0;\n" + sync
	give := "mov.u32 %x, %ctaid.x; mul.wide.u32 %a, %x, 256; add.s64 %out, %out, %a;\n" +
		first + "cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], 256;\n" + first + "cp.async.bulk.commit_group;\n" + first + "cp.async.bulk.wait_group 0;\n" + sync
	proxied := strings.NewReplacer("%t;\n", "%t; fence.proxy.async;\n")
	const (
		unfenced  = "that a thread of a block of the cluster wrote without a fence.proxy.async"
		unordered = "in no order: no barrier of the cluster, arrival at an mbarrier or flag"
		reading   = "a bulk copy may still be reading"
	)
	for _, c := range []struct {
		name, body string
		bugs       []plantedBug
	}{
		{"push", peer + sync + "st.shared::cluster.u32 [%j], %t;\n" + sync + "ld.shared.u32 %w, [%i];\n" + sync, []plantedBug{
			{"nothing", "$", "", ""},
			{"volatile", `st\.shared::cluster`, "st.volatile.shared::cluster", ""},
			{"no barrier between store and load", `(%t;\n)barrier[^\n]*`, "$1", unordered},
			{"the barrier of the block in place of the cluster's", `(%t;\n)barrier[^\n]*`, "${1}bar.sync 0;", unordered},
			{"a fence in place of it", `(%t;\n)barrier[^\n]*`, "${1}fence.acq_rel.cluster;", unordered},
			{"an arrival that is relaxed", `(%t;\nbarrier.cluster.arrive.)release`, "${1}relaxed", "barrier.cluster.arrive.relaxed at PTX line"},
			{"a relaxed arrival behind a fence", `(%t;\n)(barrier.cluster.arrive.)release`, "${1}fence.acq_rel.cluster; ${2}relaxed", ""},
			{"a relaxed arrival behind a fence for the block", `(%t;\n)(barrier.cluster.arrive.)release`, "${1}fence.acq_rel.cta; ${2}relaxed", "barrier.cluster.arrive.relaxed at PTX line"},
			{"the load before the wait", `(?s)(%t;\nbarrier[^;]*;)( barrier[^;]*;)\n(ld[^;]*;)`, "$1 $3 $2", unordered},
			{"the store behind the arrival", `(st[^;]*;)\n(barrier[^;]*;)`, "$2 $1\n", unordered},
			{"no barrier before the first access", `^([^\n]*\n)barrier[^\n]*`, "$1", "which may not have begun"},
			{"both write one place", `%t;\n`, "%t; st.shared.u32 [%i], 5;\n", "write of what thread"},
			{"both write one place, one behind the other", `(?s)(%t;\n)(barrier.*?\n)`, "$1$2 st.shared.u32 [%i], 5;\n", ""},
		}},
		{"pull", peer + "st.shared.u32 [%i], %t;\n" + sync + "ld.shared::cluster.u32 %w, [%j];\n" + sync + "st.shared.u32 [%i], 7;\n", []plantedBug{
			{"nothing", "$", "", ""},
			{"no barrier before the load", `(%t;\n)barrier[^\n]*`, "$1", "which may not have begun"},
			{"no barrier behind the load", `(\[%j\];\n)barrier[^\n]*`, "$1", unordered},
			{"a relaxed one behind the load", `(\[%j\];\nbarrier.cluster.arrive.)release`, "${1}relaxed", "releases nothing"},
			{"no barrier at the end", `(?s)(\[%j\];\n)barrier.*`, "$1", "exited"},
			{"a relaxed one at the end", `(?s)(\[%j\];\nbarrier.cluster.arrive.)release(.*?\n).*`, "${1}relaxed$2", "exited"},
			{"the store before the wait", `(\[%j\];\nbarrier[^;]*;)([^\n]*)\n([^\n]*)\n$`, "$1 $3 $2", unordered},
		}},
		{"arrival", initBarrier(64) + peer + sync + arrival + waitFor("W", "%bar", 0) + "ld.shared.u32 %w, [%i];\n" + sync, []plantedBug{
			{"nothing", "$", "", ""},
			{"no barrier at the end", `(?s)(ld\.shared\.u32 %w, \[%i\];).*`, "$1", ""},
			{"neither wait nor barrier at the end", `(?s)W: .*`, "", "exited"},
			{"no wait", `@!%p bra W;`, "", unordered},
			{"the arrival first", `(st\.shared::cluster[^;]*;)\n([^\n]*)`, "$2 $1", unordered},
			{"a relaxed arrival", `arrive\.release\.cluster`, "arrive.relaxed.cluster", unordered},
			{"a relaxed arrival behind a fence", `(mapa[^;]*%bar[^;]*;) mbarrier\.arrive\.release\.cluster`, "$1 fence.acq_rel.cluster; mbarrier.arrive.relaxed.cluster", ""},
			{"a relaxed wait", `try_wait\.parity`, "try_wait.parity.relaxed.cluster", unordered},
			{"a relaxed wait with a fence for the block behind", `(?s)try_wait\.parity(.*?W;)`, "try_wait.parity.relaxed.cluster$1 fence.acq_rel.cta;", unordered},
			{"an arrival for the block", `arrive\.release\.cluster`, "arrive.release.cta", unordered},
			{"an arrival that does not say", `arrive\.release\.cluster`, "arrive", ""},
			{"a relaxed wait with a fence behind", `(?s)try_wait\.parity(.*?W;)`, "try_wait.parity.relaxed.cluster$1 fence.acq_rel.cluster;", ""},
			{"no barrier behind the initialisation", `(\n[^\n]*mapa[^\n]*\n)barrier.cluster.arrive.release`, "${1}barrier.cluster.arrive.relaxed", ""},
			{"no fence of the initialisation either", `@%first fence\.mbarrier_init\.release\.cluster;((?s).*?)arrive\.release`, "${1}arrive.relaxed", "without a barrier after its initialisation"},
		}},
		{"flag", peer + flag, []plantedBug{
			{"nothing", "$", "", ""},
			{"a release", `(?s)@%first fence[^;]*;\n@%first st\.relaxed`, "@%first st.release", ""},
			{"an acquire", `(?s)L: ld\.relaxed(.*?)fence[^;]*;`, "L: ld.acquire$1", ""},
			{"no barrier at the end", `(?s)(ld\.shared\.u32 %w, \[%i\];).*`, "$1", ""},
			{"no fence before", `@%first fence[^;]*;`, "", "no fence before st.relaxed"},
			{"a fence for the block before", `@%first fence\.acq_rel\.cluster`, "@%first fence.acq_rel.cta", "has scope .cta, which does not reach the other block"},
			{"no fence behind", `(bra L;\n)fence[^;]*;`, "$1", "no fence of scope .cluster or wider follows ld.relaxed"},
			{"a fence for the block behind", `(bra L;\n)fence\.acq_rel\.cluster`, "${1}fence.acq_rel.cta", "no fence of scope .cluster or wider follows ld.relaxed"},
			{"a flag for the block", `st\.relaxed\.cluster`, "st.relaxed.cta", "the scope .cta of st.relaxed"},
			{"a wait of the block's scope", `ld\.relaxed\.cluster`, "ld.relaxed.cta", "the scope .cta of ld.relaxed"},
			{"a plain flag", `st\.relaxed\.cluster\.`, "st.", "in no order"},
			{"no barrier of the block before", `bar\.sync 0;`, "", "in no order"},
			{"the data behind the flag", `(?s)(st\.shared::cluster[^;]*;)(.*?)L:`, "$2 $1 L:", "in no order"},
			{"an atomic", `st\.relaxed\.cluster(\S* \[)`, "red.relaxed.cluster.shared::cluster.add.u32 [", ""},
		}},
		{"counter", home + "mov.u32 %w, 0;\n" + first + "st.shared.u32 [%s], 0;\n" + sync + "red.relaxed.cluster.shared::cluster.add.u32 [%x], 1;\n" + sync + "ld.shared::cluster.u32 %w, [%x];\n" + sync, []plantedBug{
			{"nothing", "$", "", ""},
			{"of the scope of the block", `red\.relaxed\.cluster`, "red.relaxed.cta", "the scope .cta of red"},
			{"by loads and stores", `red\.relaxed[^;]*;`, "ld.shared::cluster.u32 %w, [%x]; add.u32 %w, %w, 1; st.shared::cluster.u32 [%x], %w;", unordered},
			{"read too soon", `(1;\n)barrier[^\n]*`, "$1", unordered},
			{"written too late", `(?s)(@%first st[^;]*;)\n(barrier.*?\n)`, "$2 $1\n", "racecheck: "},
		}},
		{"multicast", ring, []plantedBug{
			{"nothing", "$", "", ""},
			{"no wait for those who read", `(?s)E1: .*?bra E1;`, "", "racecheck: write"},
			{"told before it was read", `(?s)(ld\.shared\.u32 %w, \[%i\];)\n(mov.*?\+8\];)`, "$2 $1\n", unordered},
			{"told relaxedly", `arrive\.release\.cluster`, "arrive.relaxed.cluster", unordered},
			{"one block alone is waited for", `\+8\], 128;((?s).*)mov\.u32 %x, 0;`, "+8], 64;${1}mov.u32 %x, %rank;", "in no order"},
			{"written by a thread of the other block", `(@%first mbarrier\.arrive\.expect[^;]*;\n)(@!%q)`, "${1}st.shared.u32 [%i], 3;\n$2", "in no order"},
		}},
		{"send", send, []plantedBug{
			{"nothing", "$", "", ""},
			{"the source is used again too soon", `(ld[^;]*;\n)barrier[^\n]*`, "$1", reading},
			{"the destination is written before by its block", `(?s)(mapa\.shared::cluster\.u32 %w.*)`, "st.shared.u32 [%i], 3;\n$1", "in no order"},
			{"the destination is written before by its block, and all wait", `(?s)(mapa\.shared::cluster\.u32 %w.*)`, "st.shared.u32 [%i], 3; fence.proxy.async;\n" + sync + "$1", ""},
		}},
		{"pushed and given on", peer + sync + "st.shared::cluster.u32 [%j], %t; fence.proxy.async;\n" + sync + give, []plantedBug{
			{"nothing", "$", "", ""},
			{"the fence behind the barrier, by the thread that issues", `fence\.proxy\.async;\n([^\n]*)`, "\n$1 @%first fence.proxy.async;", ""},
			{"no fence", `fence\.proxy\.async;`, "", unfenced},
			{"one thread's fence", `fence\.proxy`, "@%first fence.proxy", unfenced},
			{"the fence before", `(st\.[^;]*;) (fence\.proxy\.async;)`, "$2 $1", unfenced},
			{"another thread's fence, behind the barrier", `fence\.proxy\.async;\n([^\n]*)`, "\n$1 setp.eq.u32 %q, %t, 40; @%q fence.proxy.async;", unfenced},
			{"another thread's fence, behind the barrier, and a barrier", `fence\.proxy\.async;\n([^\n]*)`, "\n$1 setp.eq.u32 %q, %t, 40; @%q fence.proxy.async; bar.sync 0;", ""},
			{"the other block's fence, behind the barrier, and another barrier", `fence\.proxy\.async;\n([^\n]*)`, "\n$1 setp.eq.u32 %q, %t, 40; @%q fence.proxy.async;\n" + sync, ""},
		}},
		{"given on behind an arrival", initBarrier(64) + peer + sync + proxied.Replace(arrival) + waitFor("W", "%bar", 0) + give, []plantedBug{
			{"nothing", "$", "", ""},
			{"the fence behind the wait", `(?s)fence\.proxy\.async;(.*?bra W;)`, "$1 fence.proxy.async;", ""},
			{"no fence", `fence\.proxy\.async;`, "", unfenced},
			{"a relaxed arrival behind fences", `fence\.proxy\.async;\n([^\n]*)arrive\.release`, "fence.proxy.async; fence.acq_rel.cluster;\n${1}arrive.relaxed", ""},
		}},
		{"given on behind a flag", peer + strings.NewReplacer("%t;\n", "%t; fence.proxy.async;\n", "ld.shared.u32 %w, [%i];\n"+sync, give).Replace(flag), []plantedBug{
			{"nothing", "$", "", ""},
			{"an acquire", `(?s)L: ld\.relaxed(.*?)fence[^;]*;`, "L: ld.acquire$1", ""},
			{"no fence", `fence\.proxy\.async;`, "", unfenced},
			{"the fence behind the wait", `(?s)fence\.proxy\.async;(.*?bra L;\n[^\n]*)`, "$1 fence.proxy.async;", ""},
		}},
		{"overwritten by a copy", initBarrier(1) + expect + peer + sync + "st.shared::cluster.u32 [%j], %t; fence.proxy.async;\n" + sync +
			first + "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%in], 256, [%bar];\n" + waitFor("W", "%bar", 0) + "ld.shared.u32 %w, [%i];\n" + sync, []plantedBug{
			{"nothing", "$", "", ""},
			{"no fence", `fence\.proxy\.async;`, "", "overwrites bytes " + unfenced},
		}},
		{"overwritten by a copy of the block that wrote", initBarrier(1) + expect + peer + sync + "st.shared::cluster.u32 [%j], %t; fence.proxy.async; bar.sync 0; mapa.shared::cluster.u32 %v, %s, %x; mapa.shared::cluster.u32 %w, %bar, %x;\n" +
			first + "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%v], [%in], 256, [%w];\n" + waitFor("W", "%bar", 0) + "ld.shared.u32 %w, [%i];\n" + sync, []plantedBug{
			{"nothing", "$", "", ""},
			{"no fence", `fence\.proxy\.async;`, "", "overwrites bytes " + unfenced},
		}},
	} {
		for _, b := range c.bugs {
			name := b.name
			b.name = c.name + ": " + name
			src := hopperKernel("", b.change(t, c.body))
			for _, o := range []Options{{}, {Seed: 4}, {Seed: 7}, {Seed: 3, Schedule: Independent}, {Seed: 4, Schedule: Independent}} {
				r := hopper(t, src)
				o.Cluster, o.StepLimit, o.Checks = [3]int{2, 1, 1}, 1<<20, AllChecks
				rep, err := r.try("k", d1(4), d1(64), o, r.upload(words(1024), "in"), r.upload(words(1024), "out"))
				b.judge(t, found(rep, err), o)
			}
		}
	}
}

package ptx

import (
	"strconv"
	"strings"
)

// vectorSpecials have components .x .y .z .w of type u32 and need one to be read as a scalar.
const vectorSpecials = " tid ntid ctaid nctaid clusterid nclusterid cluster_ctaid cluster_nctaid "

var scalarSpecials = map[string]Type{
	"laneid": U32, "warpid": U32, "nwarpid": U32, "smid": U32, "nsmid": U32, "gridid": U64,
	"lanemask_eq": U32, "lanemask_le": U32, "lanemask_lt": U32, "lanemask_ge": U32, "lanemask_gt": U32,
	"clock": U32, "clock_hi": U32, "clock64": U64, "globaltimer": U64, "globaltimer_lo": U32, "globaltimer_hi": U32,
	"is_explicit_cluster": Pred, "cluster_ctarank": U32, "cluster_nctarank": U32,
	"total_smem_size": U32, "aggr_smem_size": U32, "dynamic_smem_size": U32, "current_graph_exec": U64,
	"reserved_smem_offset_begin": U32, "reserved_smem_offset_end": U32, "reserved_smem_offset_cap": U32,
	"reserved_smem_offset_0": U32, "reserved_smem_offset_1": U32,
}

// specialNeed is what a special register asks of a module, as far as that is more than the oldest target has.
func specialNeed(name string) need {
	if strings.Contains(name, "cluster") {
		return need{version: Version{7, 8}, target: Target{SM: 90}}
	}
	return need{}
}

// vectorSpecial reports whether a special register must be read by component.
func vectorSpecial(name string) bool { return strings.Contains(vectorSpecials, " "+name+" ") }

// SpecialType is the type of a special register, named without "%" ("tid.x", "clock64"); NoType if there is none.
// A vector such as "tid" has the type of its components.
func SpecialType(name string) Type {
	base, part, ok := strings.Cut(name, ".")
	if vectorSpecial(base) {
		if !ok || len(part) == 1 && strings.Contains("xyzw", part) {
			return U32
		}
		return NoType
	}
	if ok {
		return NoType
	}
	if t, ok := scalarSpecials[name]; ok {
		return t
	}
	return numberedSpecial(name)
}

// numberedSpecial knows envreg0…31, pm0…7 and pm0_64…pm7_64.
func numberedSpecial(name string) Type {
	if num, ok := strings.CutPrefix(name, "envreg"); ok && inRange(num, 31) {
		return U32
	}
	num, ok := strings.CutPrefix(name, "pm")
	if !ok {
		return NoType
	}
	if wide, is64 := strings.CutSuffix(num, "_64"); is64 && inRange(wide, 7) {
		return U64
	}
	if inRange(num, 7) {
		return U32
	}
	return NoType
}

func inRange(num string, most uint64) bool {
	n, err := strconv.ParseUint(num, 10, 8)
	return err == nil && n <= most && strconv.FormatUint(n, 10) == num
}

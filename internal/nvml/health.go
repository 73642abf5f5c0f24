package nvml

import (
	"unsafe"

	"github.com/warpline-ml/warpline/internal/dl"
)

// Figures of Health, which a monitor does not show.
const (
	PowerUsual     Key = "power_default_limit_watts"
	ECCPending     Key = "ecc_enabled_after_reset"
	MIGPending     Key = "mig_enabled_after_reset"
	ComputeMode    Key = "compute_mode" // 0 default, 1 one thread, 2 prohibited, 3 one process
	Persistence    Key = "persistence_enabled"
	Display        Key = "display_active"
	RetiredSingle  Key = "retired_pages_corrected"
	RetiredDouble  Key = "retired_pages_uncorrected"
	RetiringPages  Key = "retired_pages_pending"
	RemappedRows   Key = "remapped_rows_uncorrected"
	RemappingRows  Key = "remapped_rows_pending"
	RemapFailed    Key = "remapped_rows_failed"
	Virtualization Key = "virtualization_mode" // 0 none, 1 passed through, 2 a virtual GPU, 3 and 4 the host of some
	FabricState    Key = "fabric_state"        // 0 has none, 1 not begun, 2 under way, 3 completed
	FabricStatus   Key = "fabric_status"       // an nvmlReturn_t
	HeldByPower    Key = "held_by_power_seconds"
	HeldByHeat     Key = "held_by_heat_seconds"
	Licensed       Key = "licensed" // 1 if a feature that takes a licence has it, 0 if there are some and none has: virtual GPUs
	mostLinks          = 18         // NVML_NVLINK_MAX_LINKS
	mostPages          = 1 << 16
	causeSingle        = 0 // NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS
	causeDouble        = 1 // NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR
	violationPower     = 0 // NVML_PERF_POLICY_POWER
	violationHeat      = 1 // NVML_PERF_POLICY_THERMAL
	copiesRead         = 0 // NVML_P2P_CAPS_INDEX_READ
)

// health is the functions that Health calls.
type health struct {
	scalars                               []dl.Proc // of the table healthScalars
	retired, remapped, fabric, link, held dl.Proc
	peer, licences                        dl.Proc
}

// healthScalars are figures that a function of its own tells.
var healthScalars = []scalar{
	{PowerUsual, 1e-3, nil, []string{"nvmlDeviceGetPowerManagementDefaultLimit"}},
	{ComputeMode, 1, nil, []string{"nvmlDeviceGetComputeMode"}},
	{Persistence, 1, nil, []string{"nvmlDeviceGetPersistenceMode"}},
	{Display, 1, nil, []string{"nvmlDeviceGetDisplayActive"}},
	{RetiringPages, 1, nil, []string{"nvmlDeviceGetRetiredPagesPendingStatus"}},
	{Virtualization, 1, nil, []string{"nvmlDeviceGetVirtualizationMode"}},
}

// The structures of nvml.h, field by field; the tests compare their layout with a C compiler's.
type (
	fabricInfo struct {
		Cluster        [16]byte
		Status, Clique uint32
		State          uint8
	}
	violation struct{ Reference, Time uint64 }
	feature   struct {
		Code, Licensed uint32
		Info, Product  [128]byte
		Enabled        uint32
		Year           uint32
		Rest           [5]uint16 // month to second
		Status         uint8
	}
	licences struct {
		Supported int32
		Count     uint32
		Features  [3]feature
	}
)

func bindHealth(find func(...string) dl.Proc) (h health) {
	for _, s := range healthScalars {
		h.scalars = append(h.scalars, find(s.symbols...))
	}
	h.retired, h.remapped = find("nvmlDeviceGetRetiredPages"), find("nvmlDeviceGetRemappedRows")
	h.fabric, h.link, h.held = find("nvmlDeviceGetGpuFabricInfo"), find("nvmlDeviceGetNvLinkState"), find("nvmlDeviceGetViolationStatus")
	h.peer, h.licences = find("nvmlDeviceGetP2PStatus"), find("nvmlDeviceGetGridLicensableFeatures_v4")
	return h
}

// Health is what a card tells of its state beside Read.
type Health struct {
	Code   Return // why it tells nothing, if so
	Values map[Key]float64
	Links  []bool // NVLinks, whether each is up
}

// Health asks card i. What it does not tell is missing.
func (l *Library) Health(i int) Health {
	out := Health{Values: map[Key]float64{}}
	h, r := number(l.api.byIndex, uintptr(i))
	if r != Success {
		out.Code = r
		return out
	}
	take := func(k Key, v float64, r Return) {
		if r == Success {
			out.Values[k] = v
		}
	}
	for i, s := range healthScalars {
		v, r := number(l.api.health.scalars[i], uintptr(h))
		take(s.key, float64(v)*s.scale, r)
	}
	ecc, r := modes(l.api.eccMode, Handle(h))
	take(ECCPending, float64(ecc[1]), r)
	mig, r := modes(l.api.migMode, Handle(h))
	take(MIGPending, float64(mig[1]), r)
	l.api.worn(Handle(h), take)
	if licensed, some := l.api.licensed(Handle(h)); some {
		out.Values[Licensed] = licensed
	}
	out.Links = l.api.links(Handle(h))
	return out
}

// worn is what a card tells of its memory's spare rows, its fabric, and what held it up.
func (a *api) worn(h Handle, take func(Key, float64, Return)) {
	for cause, key := range map[uintptr]Key{causeSingle: RetiredSingle, causeDouble: RetiredDouble} {
		n, r := with(func(s *scratch) (uint64, Return) {
			s.word[0] = 0 // room for none: the number alone
			r := call(a.health.retired, uintptr(h), cause, uintptr(unsafe.Pointer(&s.word[0])), 0)
			if r == InsufficientSize {
				r = Success
			}
			return uint64(uint32(s.word[0])), r
		})
		if n < mostPages {
			take(key, float64(n), r)
		}
	}
	rows, r := with(func(s *scratch) ([4]uint32, Return) {
		s.rows = [4]uint32{}
		at := func(i int) uintptr { return uintptr(unsafe.Pointer(&s.rows[i])) }
		r := call(a.health.remapped, uintptr(h), at(0), at(1), at(2), at(3))
		return s.rows, r
	})
	take(RemappedRows, float64(rows[1]), r)
	take(RemappingRows, float64(rows[2]), r)
	take(RemapFailed, float64(rows[3]), r)
	f, r := with(func(s *scratch) (fabricInfo, Return) {
		s.fabric = fabricInfo{}
		r := call(a.health.fabric, uintptr(h), uintptr(unsafe.Pointer(&s.fabric)))
		return s.fabric, r
	})
	take(FabricState, float64(f.State), r)
	take(FabricStatus, float64(f.Status), r)
	for policy, key := range map[uintptr]Key{violationPower: HeldByPower, violationHeat: HeldByHeat} {
		v, r := with(func(s *scratch) (violation, Return) {
			s.violation = violation{}
			r := call(a.health.held, uintptr(h), policy, uintptr(unsafe.Pointer(&s.violation)))
			return s.violation, r
		})
		take(key, float64(v.Time)*1e-9, r)
	}
}

// licensed is 1 if any of the features that take a licence has it; some is false where there are none.
func (a *api) licensed(h Handle) (licensed float64, some bool) {
	l, r := with(func(s *scratch) (licences, Return) {
		s.licences = licences{}
		r := call(a.health.licences, uintptr(h), uintptr(unsafe.Pointer(&s.licences)))
		return s.licences, r
	})
	if r != Success || l.Supported == 0 || l.Count == 0 || int(l.Count) > len(l.Features) {
		return 0, false
	}
	for _, f := range l.Features[:l.Count] {
		if f.Licensed != 0 {
			return 1, true
		}
	}
	return 0, true
}

// links are the NVLinks of a card; those that it does not have give an error.
func (a *api) links(h Handle) (up []bool) {
	for i := range uintptr(mostLinks) {
		v, r := number(a.health.link, uintptr(h), i)
		if r != Success {
			break
		}
		up = append(up, uint32(v) == 1)
	}
	return up
}

// Peer is what the driver says of reading card j from card i, an nvmlGpuP2PStatus_t: 0 works.
func (l *Library) Peer(i, j int) (status int, r Return) {
	a, r := number(l.api.byIndex, uintptr(i))
	if r != Success {
		return 0, r
	}
	b, r := number(l.api.byIndex, uintptr(j))
	if r != Success {
		return 0, r
	}
	v, r := number(l.api.health.peer, uintptr(a), uintptr(b), copiesRead)
	return int(uint32(v)), r
}

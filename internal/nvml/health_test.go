package nvml

import (
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/warpline-ml/warpline/internal/hostmem"
)

func TestHealthLayout(t *testing.T) {
	lib := fake(t, plain, Success)
	at, err := lib.Lookup("health_layout")
	if err != nil {
		t.Fatal(err)
	}
	want := []uintptr{unsafe.Sizeof(fabricInfo{}), unsafe.Offsetof(fabricInfo{}.Status), unsafe.Offsetof(fabricInfo{}.Clique), unsafe.Offsetof(fabricInfo{}.State),
		unsafe.Sizeof(violation{}), unsafe.Offsetof(violation{}.Time),
		unsafe.Sizeof(licences{}), unsafe.Offsetof(licences{}.Features) + unsafe.Sizeof(feature{}) + unsafe.Offsetof(feature{}.Licensed)}
	if got := hostmem.Slice[uintptr](uintptr(at), len(want)); !slices.Equal(got, want) {
		t.Errorf("C says %d, Go %d", got, want)
	}
}

func TestHealth(t *testing.T) {
	l := open(t, plain)
	h := l.Health(0)
	want := map[Key]float64{PowerUsual: 500, ECCPending: 1, MIGPending: 0, ComputeMode: 3, Persistence: 1, Display: 0, RetiredSingle: 0, RetiredDouble: 4, RetiringPages: 1,
		RemappedRows: 5, RemappingRows: 1, RemapFailed: 0, Virtualization: 2, FabricState: 2, FabricStatus: 27, HeldByPower: 2.5, HeldByHeat: 0, Licensed: 1}
	if !reflect.DeepEqual(h.Values, want) || !slices.Equal(h.Links, []bool{true, false, true}) || h.Code != Success {
		t.Errorf("%+v", h)
	}
	if s, r := l.Peer(0, 1); s != 4 || r != Success {
		t.Errorf("peer %d, %v", s, r)
	}
	if h := l.Health(7); h.Code == Success || len(h.Values) > 0 {
		t.Errorf("a card that is not there: %+v", h)
	}
}

// TestHealthOfOldDrivers: what a library lacks is missing, and no zero.
func TestHealthOfOldDrivers(t *testing.T) {
	l := open(t, plain, "nvmlDeviceGetGpuFabricInfo", "nvmlDeviceGetRemappedRows", "nvmlDeviceGetNvLinkState", "nvmlDeviceGetP2PStatus", "nvmlDeviceGetComputeMode", "nvmlDeviceGetGridLicensableFeatures_v4")
	h := l.Health(0)
	for _, k := range []Key{FabricState, RemappedRows, RemapFailed, ComputeMode, Licensed} {
		if v, ok := h.Values[k]; ok {
			t.Errorf("%s is %v", k, v)
		}
	}
	if _, r := l.Peer(0, 1); r != FunctionNotFound || h.Links != nil {
		t.Errorf("peer %v, links %v", r, h.Links)
	}
}

package nvkernel

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/warpline-ml/warpline/internal/dl"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/testutil/cc"
)

// layout is nv-ioctl.h's and uvm_ioctl.h's structures, of open-gpu-kernel-modules, as a C compiler lays them out.
const layout = `
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
typedef struct { uint32_t domain; uint8_t bus, slot, function; uint16_t vendor_id, device_id; } nv_pci_info_t;
typedef struct { uint8_t valid; nv_pci_info_t pci_info; uint32_t gpu_id; uint16_t interrupt_line;
  uint64_t reg_address __attribute__((aligned(8))), reg_size __attribute__((aligned(8))), fb_address __attribute__((aligned(8))), fb_size __attribute__((aligned(8)));
  uint32_t minor_number; uint8_t dev_name[10]; } nv_ioctl_card_info_t;
typedef struct { uint32_t cmd, reply; char versionString[64]; } nv_ioctl_rm_api_version_t;
typedef struct { uint64_t flags __attribute__((aligned(8))); uint32_t rmStatus; } UVM_INITIALIZE_PARAMS;
const uint64_t layout[] = { sizeof(nv_ioctl_card_info_t), offsetof(nv_ioctl_card_info_t, valid), offsetof(nv_ioctl_card_info_t, pci_info.domain),
  offsetof(nv_ioctl_card_info_t, pci_info.bus), offsetof(nv_ioctl_card_info_t, pci_info.slot), offsetof(nv_ioctl_card_info_t, minor_number),
  sizeof(nv_ioctl_rm_api_version_t), offsetof(nv_ioctl_rm_api_version_t, versionString), sizeof(UVM_INITIALIZE_PARAMS), offsetof(UVM_INITIALIZE_PARAMS, rmStatus),
  _IOWR('F', 210, nv_ioctl_rm_api_version_t), _IOWR('F', 200, nv_ioctl_card_info_t[32]) };
`

func TestLayout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "layout.so")
	if err := os.WriteFile(path, cc.Library(t, "layout.c", map[string][]byte{"layout.c": []byte(layout)}), 0o777); err != nil {
		t.Fatal(err)
	}
	lib, err := dl.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	at, err := lib.Lookup("layout")
	if err != nil {
		t.Fatal(err)
	}
	want := []uintptr{cardSize, atValid, atDomain, atBus, atSlot, atMinor, versionSize, 8, uvmSize, 8, iowr(checkVersion, versionSize), iowr(cardInfo, mostCards*cardSize)}
	if got := hostmem.Slice[uintptr](uintptr(at), len(want)); !slices.Equal(got, want) {
		t.Errorf("C says %#x, Go %#x", got, want)
	}
}

func TestAnswers(t *testing.T) {
	answer := make([]byte, versionSize)
	copy(answer[8:], "550.54.14\x00leftover")
	if v := version(answer); v != "550.54.14" {
		t.Errorf("version %q", v)
	}
	list := make([]byte, mostCards*cardSize)
	second := list[cardSize:]
	second[atValid], second[atBus], second[atSlot] = 1, 0xb3, 2
	binary.NativeEndian.PutUint32(second[atDomain:], 1)
	binary.NativeEndian.PutUint32(second[atMinor:], 7)
	if got := cards(list); len(got) != 1 || got[0] != (Card{"0001:b3:02.0", 7}) {
		t.Errorf("cards %v", got)
	}
}

// TestRefused: what is no node of the driver's is told by the system's error.
func TestRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nvidiactl")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{file: syscall.ENOTTY, file + "0": syscall.ENOENT} {
		_, err := Version(path)
		_, err2 := Cards(path)
		_, err3 := InitializeUVM(path)
		for _, err := range []error{err, err2, err3} {
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", path, err, want)
			}
		}
	}
}

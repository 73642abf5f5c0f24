// Package nvkernel asks the kernel's half of NVIDIA's driver by ioctls, without any library of NVIDIA's: what works when
// nothing above does. Numbers and layouts are those of nv-ioctl.h, nv-ioctl-numbers.h and uvm_linux_ioctl.h of
// open-gpu-kernel-modules. Nothing here makes a context or changes what a card does.
package nvkernel

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// The numbers of ioctls.
const (
	magic         = 'F'
	cardInfo      = 200        // NV_ESC_CARD_INFO
	checkVersion  = 210        // NV_ESC_CHECK_VERSION_STR
	uvmInitialize = 0x30000001 // UVM_INITIALIZE, which has no encoding of size and direction
)

// query asks for the version without comparing it: NV_RM_API_VERSION_CMD_QUERY.
const query = '2'

// Sizes of structures.
const (
	versionSize = 4 + 4 + 64 // nv_ioctl_rm_api_version_t: cmd, reply, versionString
	cardSize    = 72         // nv_ioctl_card_info_t
	mostCards   = 32         // NV_MAX_DEVICES
	uvmSize     = 16         // UVM_INITIALIZE_PARAMS: flags, rmStatus
)

// Offsets in nv_ioctl_card_info_t.
const (
	atValid  = 0
	atDomain = 4
	atBus    = 8
	atSlot   = 9
	atMinor  = 56
)

// iowr is Linux' _IOWR.
func iowr(number, size uintptr) uintptr { return 3<<30 | size<<16 | magic<<8 | number }

// Card is one that the driver has brought up.
type Card struct {
	Address string // "0000:01:00.0"
	Minor   int    // of /dev/nvidiaN
}

// version reads the answer to checkVersion.
func version(answer []byte) string {
	text, _, _ := bytes.Cut(answer[8:versionSize], []byte{0})
	return string(bytes.ToValidUTF8(text, []byte("?")))
}

// cards reads the answer to cardInfo.
func cards(answer []byte) (out []Card) {
	for i := 0; i+cardSize <= len(answer); i += cardSize {
		c := answer[i : i+cardSize]
		if c[atValid] == 0 {
			continue
		}
		address := fmt.Sprintf("%04x:%02x:%02x.0", binary.NativeEndian.Uint32(c[atDomain:]), c[atBus], c[atSlot])
		out = append(out, Card{address, int(binary.NativeEndian.Uint32(c[atMinor:]))})
	}
	return out
}

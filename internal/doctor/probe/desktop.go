package probe

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/doctor"
)

// This file turns what Windows and macOS tell into facts; probe_windows.go and probe_darwin.go ask them.

// displayDevice is a device of the class of adapters, as Windows' list of devices has it.
type displayDevice struct {
	name    string // "NVIDIA GeForce RTX 4060 Laptop GPU"
	id      string // `PCI\VEN_10DE&DEV_28E0&SUBSYS_…`
	service string // of its driver: nvlddmkm
	version string // of its driver, as Windows counts: 31.0.15.5222
	memory  int64
	problem int // CM_PROB_…; 0: it works
}

var hardwareID = regexp.MustCompile(`(?i)VEN_([0-9A-F]{4})&DEV_([0-9A-F]{4})`)

// adapter is the fact of a device.
func (d displayDevice) adapter() doctor.Adapter {
	a := doctor.Adapter{Name: d.name, Driver: d.service, Version: d.version, Memory: d.memory, Source: "registry", Problem: d.problem}
	if m := hardwareID.FindStringSubmatch(d.id); m != nil {
		vendor, _ := strconv.ParseInt(m[1], 16, 32)
		device, _ := strconv.ParseInt(m[2], 16, 32)
		a.Vendor, a.Device = int(vendor), int(device)
	}
	if a.Vendor == nvidiaVendor && a.Driver != "BasicDisplay" {
		a.Version = nvidiaVersion(d.version)
	}
	return a
}

// Makers' numbers on the PCI bus.
const (
	nvidiaVendor = 0x10de
	appleVendor  = 0x106b
)

// nvidiaVersion is the version of NVIDIA's driver as its makers count, of the one that Windows counts: the last five digits of
// 31.0.15.5222 are 552.22. Another text is returned as it is.
func nvidiaVersion(windows string) string {
	parts := strings.Split(windows, ".")
	if len(parts) != 4 || len(parts[3]) > 4 {
		return windows
	}
	digits := parts[2] + fmt.Sprintf("%04s", parts[3])
	if len(digits) < 5 || strings.Trim(digits, "0123456789") != "" {
		return windows
	}
	digits = digits[len(digits)-5:]
	return digits[:3] + "." + digits[3:]
}

// windowsLibraries are the files of the driver that programs need.
var windowsLibraries = []string{"nvcuda.dll", "nvml.dll", "nvidia-smi.exe"}

// systemLibraries looks for the driver's files in Windows' folder of programs.
func (p *prober) systemLibraries(system string) {
	for _, name := range windowsLibraries {
		l := doctor.Library{Name: name}
		path := filepath.Join(system, name)
		if st, err := os.Stat(path); err == nil {
			l.Path, l.Real, l.Size, l.Why = path, path, st.Size(), "driver"
			l.Version, l.Bits = fileVersion(path)
		}
		p.facts.Libraries = append(p.facts.Libraries, l)
	}
}

// maxResources is how much of a file's resources is looked through for its version.
const maxResources = 1 << 20

// fixedInfo begins the structure VS_FIXEDFILEINFO: signature, version of the structure.
var fixedInfo = []byte{0xbd, 0x04, 0xef, 0xfe, 0, 0, 1, 0}

// fileVersion is the version in the resources of a library or program of Windows, as NVIDIA counts, and its bits.
func fileVersion(path string) (version string, bits int) {
	f, err := pe.Open(path)
	if err != nil {
		return "", 0
	}
	defer f.Close()
	bits = 64
	if f.Machine == pe.IMAGE_FILE_MACHINE_I386 {
		bits = 32
	}
	s := f.Section(".rsrc")
	if s == nil {
		return "", bits
	}
	b, _ := io.ReadAll(io.NewSectionReader(s, 0, min(int64(s.Size), maxResources)))
	at := bytes.Index(b, fixedInfo)
	if at < 0 || at+16 > len(b) {
		return "", bits
	}
	high, low := binary.LittleEndian.Uint32(b[at+8:]), binary.LittleEndian.Uint32(b[at+12:])
	return nvidiaVersion(fmt.Sprintf("%d.%d.%d.%d", high>>16, high&0xffff, low>>16, low&0xffff)), bits
}

// macSystem is what macOS tells by sysctl.
type macSystem struct {
	brand   string // machdep.cpu.brand_string: "Apple M2 Pro"
	model   string // hw.model: "MacBookPro16,1"
	release string // kern.osproductversion: "14.5"
	kernel  string // kern.osrelease
	memory  int64  // hw.memsize
}

// macFacts are the facts of a Mac. Apple's chips have a GPU that PyTorch's mps uses, with the memory of the host; what an Intel
// Mac has is not told without asking its drivers.
func (p *prober) macFacts(m macSystem) {
	f := p.facts
	f.Platform.Name, f.Platform.Release, f.Platform.Kernel = "macos", m.release, m.kernel
	f.CPU.Model, f.Memory.Total = m.brand, m.memory
	a := doctor.Adapter{Name: "graphics of " + m.model, Source: "model"}
	if strings.HasPrefix(m.brand, "Apple") {
		a = doctor.Adapter{Name: m.brand, Vendor: appleVendor, Memory: m.memory, Source: "metal"}
		f.Shows.Metal = true
	}
	f.Adapters = append(f.Adapters, a)
}

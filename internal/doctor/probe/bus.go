package probe

import (
	"encoding/binary"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/doctor"
)

const pciFolder = "/sys/bus/pci/devices"

func (p *prober) bus() {
	if !p.there(pciFolder) {
		p.drm()
		return
	}
	p.facts.PCI = []doctor.PCI{}
	for _, address := range p.list(pciFolder) {
		dir := pciFolder + "/" + address
		class := p.int(dir + "/class")
		vendor := p.int(dir + "/vendor")
		switch {
		case vendor == 0x10de && class>>8 == 0x0680:
			p.facts.Fabric.Switches++
		case class>>16 == 0x03 || class>>16 == 0x12:
			p.facts.PCI = append(p.facts.PCI, p.function(address, dir))
		}
	}
	p.drm()
}

func (p *prober) function(address, dir string) doctor.PCI {
	d := doctor.PCI{Address: address, Vendor: p.int(dir + "/vendor"), Device: p.int(dir + "/device"), Class: p.int(dir + "/class"), Revision: p.int(dir + "/revision"),
		Subsystem: p.int(dir+"/subsystem_vendor")<<16 | p.int(dir+"/subsystem_device"), Driver: path.Base(p.link(dir + "/driver")), Link: p.pcie(dir),
		CPUs: p.read(dir + "/local_cpulist"), BootVGA: p.read(dir+"/boot_vga") == "1", BARs: regions(p.read(dir + "/resource")), Asleep: p.read(dir+"/power/runtime_status") == "suspended"}
	if d.Driver == "." {
		d.Driver = ""
	}
	if n, ok := p.number(dir + "/numa_node"); ok {
		d.Numa = new(int(n))
	}
	if b := p.config(dir, 0, 4); b != nil && !d.Asleep {
		d.Config = new(binary.LittleEndian.Uint32(b))
	}
	for _, kind := range []string{"correctable", "nonfatal", "fatal"} {
		if n, ok := total(p.read(dir + "/aer_dev_" + kind)); ok {
			if d.Errors == nil {
				d.Errors = map[string]int64{}
			}
			d.Errors[kind] = n
		}
	}
	d.Upstream = p.upstream(address)
	return d
}

// total is the last line of a file of AER counters: TOTAL_ERR_COR 12.
func total(text string) (int64, bool) {
	fields := strings.Fields(text)
	if len(fields) < 2 || !strings.HasPrefix(fields[len(fields)-2], "TOTAL_") {
		return 0, false
	}
	n, err := strconv.ParseInt(fields[len(fields)-1], 10, 64)
	return n, err == nil
}

// Flags of a region in sysfs, by linux/ioport.h.
const (
	wide  = 0x00100000 // IORESOURCE_MEM_64: it takes two of the lines
	unset = 0x20000000 // IORESOURCE_UNSET: it has a size and no address
)

// regions are the sizes of those that a function has, of its first six lines "start end flags"; 0 of one without an address.
func regions(text string) (out []int64) {
	skip := false
	for i, line := range slices.Collect(strings.Lines(text)) {
		f := strings.Fields(line)
		if len(f) != 3 || i == 6 {
			break
		}
		start, err := strconv.ParseUint(f[0], 0, 64)
		end, err2 := strconv.ParseUint(f[1], 0, 64)
		flags, err3 := strconv.ParseUint(f[2], 0, 64)
		switch {
		case err != nil || err2 != nil || err3 != nil:
			return nil
		case skip || flags == 0:
			skip = false
			continue
		case flags&unset != 0 || end <= start:
			out = append(out, 0)
		default:
			out = append(out, int64(end-start+1))
		}
		skip = flags&wide != 0
	}
	return out
}

// generations of PCI Express, by the speeds of sysfs in GT/s.
var generations = map[string]int{"2.5": 1, "5.0": 2, "5": 2, "8.0": 3, "8": 3, "16.0": 4, "16": 4, "32.0": 5, "32": 5, "64.0": 6, "64": 6}

func (p *prober) pcie(dir string) *doctor.Link {
	gen := func(file string) int {
		speed, _, _ := strings.Cut(p.read(dir+"/"+file), " ")
		return generations[speed]
	}
	l := &doctor.Link{Gen: gen("current_link_speed"), MaxGen: gen("max_link_speed"), Width: p.int(dir + "/current_link_width"), MaxWidth: p.int(dir + "/max_link_width")}
	if l.MaxWidth == 0 || l.MaxWidth > 32 { // of what is no PCI Express sysfs says 255
		return nil
	}
	return l
}

// config is n bytes of a function's configuration space; nil where they cannot be read.
func (p *prober) config(dir string, at int64, n int) []byte {
	f, err := os.Open(p.path(dir + "/config"))
	if err != nil {
		return nil
	}
	defer f.Close()
	b := make([]byte, n)
	if _, err := io.ReadFull(io.NewSectionReader(f, at, int64(n)), b); err != nil {
		return nil
	}
	return b
}

var addressForm = regexp.MustCompile(`^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// upstream are the bridges above a function, the nearest first: they are in the path that its link in /sys leads to.
func (p *prober) upstream(address string) (out []doctor.Bridge) {
	names := strings.Split(p.link(pciFolder+"/"+address), "/")
	for i := len(names) - 2; i >= 0; i-- {
		if addressForm.MatchString(names[i]) {
			dir := pciFolder + "/" + names[i]
			out = append(out, doctor.Bridge{Address: names[i], Link: p.pcie(dir), ACS: p.acs(dir)})
		}
	}
	return out
}

// acsCapability is the number of the extended capability, whose list begins at 256; its control word is at 6.
const acsCapability, extended, acsControl = 0x0d, 256, 6

// acs is the control word of a bridge's access control; nil where it has none or only root may read it.
func (p *prober) acs(dir string) *int {
	for at := int64(extended); at >= extended && at < 4096; {
		b := p.config(dir, at, 8)
		if b == nil {
			return nil
		}
		head := binary.LittleEndian.Uint32(b)
		if head&0xffff == acsCapability {
			return new(int(binary.LittleEndian.Uint16(b[acsControl:])))
		}
		next := int64(head >> 20)
		if next <= at { // the list rises on every device there is, and must end
			return nil
		}
		at = next
	}
	return nil
}

// drm lists what draws, where it is no PCI function: GPUs of small machines.
func (p *prober) drm() {
	for _, name := range p.list("/sys/class/drm") {
		dir := "/sys/class/drm/" + name + "/device"
		if strings.Contains(name, "-") || !strings.HasPrefix(name, "card") || p.there(dir+"/vendor") {
			continue
		}
		if driver := path.Base(p.link(dir + "/driver")); driver != "." {
			p.facts.Adapters = append(p.facts.Adapters, doctor.Adapter{Driver: driver, Source: "drm"})
		}
	}
}

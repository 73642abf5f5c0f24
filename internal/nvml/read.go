package nvml

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// Key names a figure of a card, with its unit.
type Key string

// The figures.
const (
	MemoryTotal    Key = "memory_total_bytes"
	MemoryUsed     Key = "memory_used_bytes"
	MemoryFree     Key = "memory_free_bytes"
	MemoryReserved Key = "memory_reserved_bytes"
	Utilization    Key = "utilization_percent"
	MemoryBusy     Key = "memory_busy_percent"
	Power          Key = "power_watts"
	PowerLimit     Key = "power_limit_watts"
	Temperature    Key = "temperature_celsius"
	SlowdownAt     Key = "slowdown_temperature_celsius"
	SMClock        Key = "sm_clock_hertz"
	SMClockMax     Key = "sm_clock_max_hertz"
	MemoryClock    Key = "memory_clock_hertz"
	MemoryClockMax Key = "memory_clock_max_hertz"
	PCIeGeneration Key = "pcie_generation"
	PCIeMaxGen     Key = "pcie_max_generation"
	PCIeWidth      Key = "pcie_width_lanes"
	PCIeMaxWidth   Key = "pcie_max_width_lanes"
	PCIeSent       Key = "pcie_sent_bytes_per_second"
	PCIeReceived   Key = "pcie_received_bytes_per_second"
	ECC            Key = "ecc_enabled"
	ECCCorrected   Key = "ecc_corrected_errors_total"
	ECCUncorrected Key = "ecc_uncorrected_errors_total"
	MIG            Key = "mig_enabled"
	clockReasons   Key = "clock_reasons"
)

// Figure says what a key is.
type Figure struct {
	Key  Key
	Help string
}

// Figures lists the keys that a card may tell, in the order in which to show them.
func Figures() []Figure { return slices.Clone(figures) }

var figures = []Figure{
	{MemoryTotal, "Memory of the card."},
	{MemoryUsed, "Memory that processes have taken, what their allocators keep for later included."},
	{MemoryFree, "Memory that no process has taken."},
	{MemoryReserved, "Memory that the driver keeps for itself."},
	{Utilization, "Share of the last sample period in which any kernel ran, however small: it is not work done."},
	{MemoryBusy, "Share of the last sample period in which memory was read or written: it is not bandwidth."},
	{Power, "Power that the card draws."},
	{PowerLimit, "Power that the card may draw."},
	{Temperature, "Temperature of the processor."},
	{SlowdownAt, "Temperature from which on the hardware slows down."},
	{SMClock, "Clock of the multiprocessors."},
	{SMClockMax, "Highest clock of the multiprocessors."},
	{MemoryClock, "Clock of the memory."},
	{MemoryClockMax, "Highest clock of the memory."},
	{PCIeGeneration, "PCIe generation of the link now: idle cards lower it."},
	{PCIeMaxGen, "PCIe generation that card and slot can have."},
	{PCIeWidth, "PCIe lanes of the link now."},
	{PCIeMaxWidth, "PCIe lanes that card and slot can have."},
	{PCIeSent, "Bytes that the card sends over PCIe, measured over 20 ms."},
	{PCIeReceived, "Bytes that the card receives over PCIe, measured over 20 ms."},
	{ECC, "1 if memory errors are corrected."},
	{ECCCorrected, "Memory errors that were corrected since the driver was loaded."},
	{ECCUncorrected, "Memory errors that were not corrected since the driver was loaded."},
	{MIG, "1 if the card is divided into instances."},
}

// scalar is a figure that a function of its own tells.
type scalar struct {
	key     Key
	scale   float64   // of what the function tells
	args    []uintptr // between the card and the result
	symbols []string  // the first that the library has
}

var scalars = []scalar{
	{Power, 1e-3, nil, []string{"nvmlDeviceGetPowerUsage"}},
	{PowerLimit, 1e-3, nil, []string{"nvmlDeviceGetEnforcedPowerLimit"}},
	{Temperature, 1, []uintptr{0}, []string{"nvmlDeviceGetTemperature"}},         // NVML_TEMPERATURE_GPU
	{SlowdownAt, 1, []uintptr{1}, []string{"nvmlDeviceGetTemperatureThreshold"}}, // NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
	{SMClock, 1e6, []uintptr{1}, []string{"nvmlDeviceGetClockInfo"}},             // NVML_CLOCK_SM
	{SMClockMax, 1e6, []uintptr{1}, []string{"nvmlDeviceGetMaxClockInfo"}},
	{MemoryClock, 1e6, []uintptr{2}, []string{"nvmlDeviceGetClockInfo"}}, // NVML_CLOCK_MEM
	{MemoryClockMax, 1e6, []uintptr{2}, []string{"nvmlDeviceGetMaxClockInfo"}},
	{PCIeGeneration, 1, nil, []string{"nvmlDeviceGetCurrPcieLinkGeneration"}},
	{PCIeMaxGen, 1, nil, []string{"nvmlDeviceGetMaxPcieLinkGeneration"}},
	{PCIeWidth, 1, nil, []string{"nvmlDeviceGetCurrPcieLinkWidth"}},
	{PCIeMaxWidth, 1, nil, []string{"nvmlDeviceGetMaxPcieLinkWidth"}},
	{PCIeSent, 1024, []uintptr{0}, []string{"nvmlDeviceGetPcieThroughput"}},     // NVML_PCIE_UTIL_TX_BYTES, in KB
	{PCIeReceived, 1024, []uintptr{1}, []string{"nvmlDeviceGetPcieThroughput"}}, // NVML_PCIE_UTIL_RX_BYTES
	{ECCCorrected, 1, []uintptr{0, 0}, []string{"nvmlDeviceGetTotalEccErrors"}}, // of the kind, since the driver's start
	{ECCUncorrected, 1, []uintptr{1, 0}, []string{"nvmlDeviceGetTotalEccErrors"}},
	{clockReasons, 1, nil, []string{"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"}},
}

// Device is what a card, or an instance of one, told at a time.
type Device struct {
	Index     int             `json:"index"`
	Name      string          `json:"name"`
	UUID      string          `json:"uuid,omitempty"`
	Bus       string          `json:"bus,omitempty"` // PCI address, as CUDA writes it: 0000:01:00.0
	Values    map[Key]float64 `json:"values"`
	Lacks     map[Key]string  `json:"lacks,omitempty"`   // what the card does not tell, and why
	Reasons   []Reason        `json:"reasons,omitempty"` // why clocks are low
	Processes []Process       `json:"processes,omitempty"`
	Instances []Device        `json:"instances,omitempty"` // of a divided card; Index is among them
	Failed    string          `json:"failed,omitempty"`    // why the card tells nothing
}

// Process is one that uses a card.
type Process struct {
	PID      int      `json:"pid"`
	Graphics bool     `json:"graphics,omitempty"`
	Memory   *float64 `json:"memory_bytes"`        // null where the driver does not tell
	Busy     *float64 `json:"utilization_percent"` // null where nothing was sampled
	Instance string   `json:"instance,omitempty"`  // of a divided card: 3/0
}

// Value is a figure, and whether the card tells it.
func (d *Device) Value(k Key) (float64, bool) {
	v, ok := d.Values[k]
	return v, ok
}

// take notes a figure or why it is missing.
func (d *Device) take(k Key, v float64, r Return) {
	if r == Success {
		d.Values[k] = v
	} else {
		d.lack(k, r.why())
	}
}

func (d *Device) lack(k Key, why string) {
	if d.Lacks == nil {
		d.Lacks = map[Key]string{}
	}
	d.Lacks[k] = why
}

// Read asks card i everything. It takes some 40 ms, in which PCIe is measured.
func (l *Library) Read(i int) Device {
	d := Device{Index: i, Values: map[Key]float64{}}
	h, r := number(l.api.byIndex, uintptr(i))
	if r != Success {
		d.Name, d.Failed = fmt.Sprintf("card %d", i), r.why()
		return d
	}
	l.read(&d, Handle(h))
	if why := d.Lacks[MemoryTotal]; why == GPUIsLost.why() {
		d.Failed = why
	}
	return d
}

func (l *Library) read(d *Device, h Handle) {
	a := l.api
	var r Return
	if d.Name, r = text(a.name, uintptr(h)); r != Success {
		d.Name = fmt.Sprintf("card %d", d.Index)
	}
	d.UUID, _ = text(a.uuid, uintptr(h))
	bus, _ := a.bus(h)
	d.Bus = address(bus)
	l.memory(d, h)
	u, r := a.rates(h)
	d.take(Utilization, float64(u.GPU), r)
	d.take(MemoryBusy, float64(u.Memory), r)
	l.scalars(d, h)
	ecc, r := modes(a.eccMode, h)
	d.take(ECC, float64(ecc[0]), r)
	mig, r := modes(a.migMode, h)
	d.take(MIG, float64(mig[0]), r)
	l.processes(d, h)
	if r == Success && mig[0] == 1 {
		l.divided(d, h)
	}
}

// address is a PCI address as CUDA and sysfs write it: NVML's domain has eight digits.
func address(bus string) string {
	bus = strings.ToLower(bus)
	if domain, rest, ok := strings.Cut(bus, ":"); ok && len(domain) == 8 && strings.HasPrefix(domain, "0000") {
		return domain[4:] + ":" + rest
	}
	return bus
}

func (l *Library) memory(d *Device, h Handle) {
	m, r := l.api.memoryOf(h)
	d.take(MemoryTotal, float64(m.Total), r)
	d.take(MemoryUsed, float64(m.Used), r)
	d.take(MemoryFree, float64(m.Free), r)
	if r == Success && m.Version == 0 {
		r = FunctionNotFound
	}
	d.take(MemoryReserved, float64(m.Reserved), r)
}

func (l *Library) scalars(d *Device, h Handle) {
	for i, s := range scalars {
		v, r := number(l.api.scalars[i], append([]uintptr{uintptr(h)}, s.args...)...)
		if s.key == clockReasons {
			if d.Reasons = ReasonsOf(v); r != Success {
				d.lack(s.key, r.why())
			}
			continue
		}
		d.take(s.key, float64(v)*s.scale, r)
	}
}

// notApplicable is what a process of no instance says of its instance.
const notApplicable = math.MaxUint32

// unknownMemory is NVML_VALUE_NOT_AVAILABLE, which Windows says of all processes.
const unknownMemory = math.MaxUint64

func (l *Library) processes(d *Device, h Handle) {
	busy := l.busy(d, h)
	for i, list := range l.api.processes {
		found, r := l.api.running(list, h)
		if r != Success && r != NotSupported {
			d.lack("processes", r.why())
		}
		for _, p := range found {
			q := Process{PID: int(p.PID), Graphics: i == 1}
			if p.Used != unknownMemory {
				q.Memory = new(float64(p.Used))
			}
			if b, ok := busy[p.PID]; ok {
				q.Busy = new(float64(b))
			}
			if !list.old && p.Instance != notApplicable && p.Compute != notApplicable {
				q.Instance = fmt.Sprintf("%d/%d", p.Instance, p.Compute)
			}
			d.Processes = merged(d.Processes, q)
		}
	}
	sorting.By(d.Processes, func(a, b Process) int { return cmp.Compare(a.PID, b.PID) })
}

// merged adds a process to a list, where one that computes and draws may be already.
func merged(list []Process, p Process) []Process {
	for i := range list {
		if list[i].PID == p.PID && list[i].Instance == p.Instance {
			return list
		}
	}
	return append(list, p)
}

// busy is the newest sample of each process.
func (l *Library) busy(d *Device, h Handle) map[uint32]uint32 {
	list, r := l.api.samples(h, 0)
	if r != Success && r != NotFound && r != NoData {
		d.lack("process_utilization_percent", r.why())
	}
	at, out := map[uint32]uint64{}, map[uint32]uint32{}
	for _, s := range list {
		if s.PID != 0 && s.Stamp >= at[s.PID] && s.SM <= 100 {
			at[s.PID], out[s.PID] = s.Stamp, s.SM
		}
	}
	return out
}

// mostInstances is beyond those of a card.
const mostInstances = 64

// divided reads the instances of a card, and says what there is of instances only.
func (l *Library) divided(d *Device, h Handle) {
	if d.Lacks[Utilization] != "" {
		d.lack(Utilization, "NVML has none of a divided card: DCGM's profiling metrics do")
		d.lack(MemoryBusy, d.Lacks[Utilization])
	}
	n, r := number(l.api.instances, uintptr(h))
	if r != Success {
		d.lack("instances", r.why())
	}
	for i := range min(n, mostInstances) {
		at, r := number(l.api.instance, uintptr(h), uintptr(i))
		if r != Success {
			continue // there may be fewer than the most
		}
		in := Device{Index: int(i), Values: map[Key]float64{}}
		in.Name, _ = text(l.api.name, uintptr(at))
		in.UUID, _ = text(l.api.uuid, uintptr(at))
		l.memory(&in, Handle(at))
		gpu, r1 := number(l.api.instanceID, uintptr(at))
		part, r2 := number(l.api.computePart, uintptr(at))
		if r1 == Success && r2 == Success {
			in.Name = strings.TrimSpace(fmt.Sprintf("%s %d/%d", in.Name, gpu, part))
		}
		l.processes(&in, Handle(at))
		d.Instances = append(d.Instances, in)
	}
}

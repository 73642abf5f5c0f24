package doctor

import (
	"time"

	"github.com/warpline-ml/warpline/internal/pyenv"
)

// Version is that of the form of [Facts]. A field may be added under the same number; one that changes its meaning or goes
// raises it.
const Version = 1

// Facts are what probes saw of a machine, and all that rules look at: whoever has them can judge the machine elsewhere.
//
// What was not looked at is absent, which is never the same as zero: pointers, nil slices and empty strings say so. Errors
// of the system are names ("EACCES"), on every system alike.
//
// A text leaves the machine in a bundle only if its field has a tag that says of which form it is: the forms are those of
// bundle.go. A field without one stays here.
type Facts struct {
	Version  int       `json:"version"`
	Tool     string    `json:"tool" bundle:"version"` // of warpline
	Time     time.Time `json:"time"`
	OS       string    `json:"os" bundle:"word"`   // as Go names it
	Arch     string    `json:"arch" bundle:"word"` // as Go names it
	Platform Platform  `json:"platform"`

	PCI      []PCI     `json:"pci"`                // display and compute controllers, and everything of NVIDIA's
	Adapters []Adapter `json:"adapters,omitempty"` // what else draws or computes, by whatever the system lists it
	Kernel   Kernel    `json:"kernel"`
	Nodes    []Node    `json:"nodes"`   // of /dev, those that are missing too
	Control  Control   `json:"control"` // what the kernel's half of the driver answers
	UVM      UVM       `json:"uvm"`

	Libraries []Library         `json:"libraries"`        // the first that the loader would find of each name
	Env       map[string]string `json:"env" bundle:"env"` // variables of a list
	NVML      NVML              `json:"nvml"`
	CUDA      CUDA              `json:"cuda"`

	Python *pyenv.Found `json:"python,omitempty"` // environments, read from files

	Limits    map[string]int64 `json:"limits,omitzero" bundle:"word"` // soft limits by ulimit's names; -1 is none
	Cgroup    Cgroup           `json:"cgroup"`
	CPU       CPU              `json:"cpu"`
	Memory    Memory           `json:"memory"`
	Places    []Place          `json:"places"`                          // file systems that trainings use
	Network   []Interface      `json:"network,omitempty"`               // names and states, no addresses
	Fabric    Fabric           `json:"fabric"`                          // NVSwitches and what runs them
	MPS       MPS              `json:"mps"`                             //
	Container Container        `json:"containers"`                      // what a host has to give cards to containers
	Holders   []Holder         `json:"holders,omitempty"`               // processes that have the driver open
	Process   *Process         `json:"process,omitempty"`               // of --pid
	Deep      []Deep           `json:"deep,omitempty"`                  // of --deep
	Notes     []string         `json:"notes,omitempty"`                 // what could not be looked at, and why
	TookMS    map[string]int64 `json:"took_ms,omitempty" bundle:"word"` // by probe
	Shows     Answers          `json:"answered_by_command"`             // of programs of the system that were asked, where files do not tell
	Floor     int              `json:"cuda_floor,omitempty"`            // the oldest CUDA that this program's own kernels run under: 11040
}

// Platform is what the machine is, and what this process lives in.
type Platform struct {
	Name        string   `json:"name" bundle:"word"`       // of the distribution: "ubuntu"
	Release     string   `json:"release" bundle:"version"` // of the distribution, "24.04"; of Windows or macOS
	Kernel      string   `json:"kernel" bundle:"release"`  // "6.8.0-45-generic"
	WSL         bool     `json:"wsl,omitempty"`
	DXG         bool     `json:"dxg,omitempty"`                  // /dev/dxg is there: Windows lends its card
	Container   string   `json:"container" bundle:"word"`        // "docker", "podman", "kubernetes", "lxc", "unknown"; empty: none
	Hypervisor  bool     `json:"hypervisor,omitempty"`           // the processor says that it is a virtual one
	Vendor      string   `json:"vendor,omitempty" bundle:"word"` // of the machine, as its firmware says
	Tegra       bool     `json:"tegra,omitempty"`                // a Jetson: its GPU is not on the bus
	CommandLine []string `json:"command_line" bundle:"option"`   // of the kernel, what concerns cards
	UptimeS     int64    `json:"uptime_s,omitempty"`
	Suspends    int64    `json:"suspends,omitempty"` // how often the machine slept since it began
	UID         int      `json:"uid"`
	GIDs        []int    `json:"gids,omitempty"`
}

// PCI is a function on the bus.
type PCI struct {
	Address   string           `json:"address" bundle:"pci"`
	Vendor    int              `json:"vendor"`
	Device    int              `json:"device"`
	Class     int              `json:"class"`                          // 0x030000: VGA
	Revision  int              `json:"revision"`                       // 255 of one that does not answer
	Subsystem int              `json:"subsystem"`                      // vendor << 16 | device
	Driver    string           `json:"driver,omitempty" bundle:"word"` // that has it; empty: none
	Config    *uint32          `json:"config,omitempty"`               // the first four bytes that the device itself answers
	BARs      []int64          `json:"bars,omitempty"`                 // sizes of the first six regions; 0: none was assigned
	Link      *Link            `json:"link,omitempty"`
	Numa      *int             `json:"numa,omitempty"` // -1: the firmware does not say
	CPUs      string           `json:"cpus,omitempty" bundle:"cpus"`
	BootVGA   bool             `json:"boot_vga,omitempty"`
	Errors    map[string]int64 `json:"errors,omitzero" bundle:"word"` // AER totals: "correctable", "nonfatal", "fatal"
	Asleep    bool             `json:"asleep,omitempty"`              // runtime power management has it suspended
	Upstream  []Bridge         `json:"upstream,omitempty"`
}

// Bridge is a hop between a card and the processor, the card's own port first.
type Bridge struct {
	Address string `json:"address" bundle:"pci"`
	Link    *Link  `json:"link,omitempty"`
	ACS     *int   `json:"acs,omitempty"` // its control word; absent: none, or only root may read it
}

// Link is a PCI Express link: generations (1 to 6) and lanes.
type Link struct {
	Gen      int `json:"gen"`
	MaxGen   int `json:"max_gen"`
	Width    int `json:"width"`
	MaxWidth int `json:"max_width"`
}

// Adapter is a device that draws or computes, by another list than the PCI bus.
type Adapter struct {
	Name    string `json:"name,omitempty" bundle:"card"`
	Vendor  int    `json:"vendor,omitempty"` // PCI number
	Device  int    `json:"device,omitempty"`
	Driver  string `json:"driver,omitempty" bundle:"word"`
	Version string `json:"driver_version,omitempty" bundle:"version"`
	Memory  int64  `json:"memory,omitempty"`               // bytes of its own
	Source  string `json:"source,omitempty" bundle:"word"` // "drm", "registry", "metal"
	Problem int    `json:"problem,omitempty"`              // Windows' code of a device that does not start
}

// Kernel is the kernel's half of the driver, and what keeps it out.
type Kernel struct {
	Modules    []Module          `json:"modules"`                            // of NVIDIA's and those that may have its cards
	Driver     string            `json:"driver,omitempty" bundle:"version"`  // of the loaded module: "550.54.14"
	Open       *bool             `json:"open,omitempty"`                     // the open flavour of it
	Files      []ModuleFile      `json:"files,omitempty"`                    // nvidia.ko of each kernel that is installed
	Headers    *bool             `json:"headers,omitempty"`                  // those of the running kernel are there
	SecureBoot *bool             `json:"secure_boot,omitempty"`              //
	Enforced   *bool             `json:"signatures_enforced,omitempty"`      // modules must be signed
	Lockdown   string            `json:"lockdown,omitempty" bundle:"word"`   //
	Params     map[string]string `json:"params,omitzero" bundle:"param"`     // of /proc/driver/nvidia/params
	Warnings   []string          `json:"warnings,omitempty"`                 // texts of /proc/driver/nvidia/warnings
	Warned     int               `json:"warned,omitempty"`                   // how many
	GSP        *bool             `json:"gsp_firmware,omitempty"`             // firmware of the driver's version is in /lib/firmware
	HMMOff     *bool             `json:"uvm_disable_hmm,omitempty"`          // of nvidia_uvm
	Majors     map[string]int    `json:"majors,omitempty" bundle:"word"`     // of /proc/devices, those of NVIDIA's
	Modprobe   *Tool             `json:"nvidia_modprobe,omitempty"`          //
	Persistent bool              `json:"persistenced,omitempty"`             // nvidia-persistenced runs
	Profiler   bool              `json:"profiler,omitempty"`                 // Nsight Compute is installed
	Blacklists []string          `json:"blacklists,omitempty" bundle:"word"` // modules that modprobe.d keeps out
	Log        Log               `json:"log"`
	IOMMU      *int              `json:"iommu,omitempty"` // how many the kernel uses
}

// Module is a loaded module.
type Module struct {
	Name string   `json:"name" bundle:"word"`
	Refs int      `json:"refs"`
	By   []string `json:"by,omitempty" bundle:"word"`
}

// ModuleFile is a module on the disk.
type ModuleFile struct {
	Kernel string `json:"kernel" bundle:"release"`
	There  bool   `json:"there"`
}

// Tool is a program.
type Tool struct {
	There   bool   `json:"there"`
	Setuid  bool   `json:"setuid,omitempty"`
	Version string `json:"version,omitempty" bundle:"version"`
}

// Log is what the kernel's log says of cards.
type Log struct {
	Source string  `json:"source,omitempty" bundle:"word"` // "kmsg", "file"; empty: nobody let this process read it
	Errno  string  `json:"errno,omitempty" bundle:"word"`  // why not
	Events []Event `json:"events,omitempty"`
}

// Event is a kind of lines of the log, of one card.
type Event struct {
	Kind  string `json:"kind" bundle:"word"` // "xid", or one of the words of package probe
	Xid   int    `json:"xid,omitempty"`
	Bus   string `json:"bus,omitempty" bundle:"pci"`
	Count int    `json:"count"`
	Text  string `json:"text,omitempty"` // of the last one
}

// Node is a device file.
type Node struct {
	Path  string `json:"path" bundle:"node"`
	There bool   `json:"there"`
	Major int    `json:"major,omitempty"`
	Minor int    `json:"minor,omitempty"`
	Mode  int    `json:"mode,omitempty"` // permission bits
	UID   int    `json:"uid,omitempty"`
	GID   int    `json:"gid,omitempty"`
	Open  string `json:"open,omitempty" bundle:"word"` // "ok", or why it does not open for reading and writing
}

// Control is what /dev/nvidiactl answers to ioctls.
type Control struct {
	Asked   bool   `json:"asked"`
	Errno   string `json:"errno,omitempty" bundle:"word"`
	Version string `json:"version,omitempty" bundle:"version"` // of the kernel's half
	Cards   *int   `json:"cards,omitempty"`                    // that it has brought up
}

// UVM is what /dev/nvidia-uvm answers to its first ioctl.
type UVM struct {
	Asked  bool   `json:"asked"`
	Errno  string `json:"errno,omitempty" bundle:"word"`
	Status uint32 `json:"status,omitempty"` // an NV_STATUS
}

// Library is a shared library that the loader would take, or one that it passes over for it.
type Library struct {
	Name    string    `json:"name" bundle:"library"`              // as it is asked for: "libcuda.so.1"
	Path    string    `json:"path,omitempty" bundle:"library"`    // the first hit; empty: there is none
	Real    string    `json:"real,omitempty" bundle:"library"`    // with symbolic links resolved
	Version string    `json:"version,omitempty" bundle:"version"` // of its file name
	Size    int64     `json:"size,omitempty"`
	Bits    int       `json:"bits,omitempty"`                     // 64; 32 of one that a 64-bit program cannot take
	Why     string    `json:"why,omitempty" bundle:"word"`        // which rule of the loader gave it: "LD_LIBRARY_PATH", "cache", "default", "driver"
	Needs   []string  `json:"needs,omitempty" bundle:"library"`   // that it asks for itself
	Missing []string  `json:"missing,omitempty" bundle:"library"` // of them, those that are nowhere
	Others  []Library `json:"others,omitempty"`                   // later hits
}

// NVML is what the child that asked NVIDIA's management library came back with.
type NVML struct {
	Child
	Code   int        `json:"code"` // nvmlReturn_t of nvmlInit
	Name   string     `json:"name,omitempty" bundle:"code"`
	Driver string     `json:"driver,omitempty" bundle:"version"`
	CUDA   string     `json:"cuda,omitempty" bundle:"version"`
	Cards  []NVMLCard `json:"cards,omitempty"`
	Peers  []Peer     `json:"peers,omitempty"`
}

// Child is how a process that asked a library ended.
type Child struct {
	Asked    bool   `json:"asked"`
	Path     string `json:"path,omitempty" bundle:"library"` // of the library
	Missing  bool   `json:"missing,omitempty"`               // no such library was found
	TimedOut bool   `json:"timed_out,omitempty"`
	LimitS   int    `json:"limit_s,omitempty"`
	At       string `json:"at,omitempty" bundle:"word"`     // what it was at: "init", "card", "peers"
	AtCard   int    `json:"at_card,omitempty"`              // which card
	Signal   string `json:"signal,omitempty" bundle:"word"` // that ended it
	Error    string `json:"error,omitempty"`                // what it said
	TookMS   int64  `json:"took_ms,omitempty"`
}

// NVMLCard is a card as the management library tells of it. Values are by the keys of package nvml.
type NVMLCard struct {
	Index     int                `json:"index"`
	Name      string             `json:"name" bundle:"card"`
	UUID      string             `json:"uuid,omitempty"`
	Bus       string             `json:"bus,omitempty" bundle:"pci"`
	Failed    string             `json:"failed,omitempty"` // why it tells nothing
	Code      int                `json:"code,omitempty"`   // nvmlReturn_t of that
	Values    map[string]float64 `json:"values,omitempty" bundle:"key"`
	Reasons   uint64             `json:"clock_reasons,omitempty"`
	Processes []NVMLProcess      `json:"processes,omitempty"`
	Instances int                `json:"instances,omitempty"`
	Links     []bool             `json:"links,omitempty"` // NVLinks, whether each is up
}

// Figures of a card at work that are no single answer of NVML's: the shares of a window in which power and heat held its clocks down.
const (
	HeldByPowerShare = "held_by_power_share"
	HeldByHeatShare  = "held_by_heat_share"
)

// NVMLProcess is a process on a card.
type NVMLProcess struct {
	PID     int    `json:"pid"`
	Memory  *int64 `json:"memory,omitempty"`
	Visible bool   `json:"visible"`           // it has an entry in this process's /proc
	Where   string `json:"where,omitempty"`   // its cgroup
	Command string `json:"command,omitempty"` //
}

// Peer is what the driver says of copies from one card to another: 0 is fine, and 1 to 5 are NVML's reasons.
type Peer struct {
	From   int `json:"from"`
	To     int `json:"to"`
	Status int `json:"status"`
}

// CUDA is what the child that asked the driver's library came back with. It makes no context.
type CUDA struct {
	Child
	Code    int        `json:"code"` // CUresult of cuInit
	Name    string     `json:"name,omitempty" bundle:"code"`
	Version int        `json:"version,omitempty"` // 12040
	Cards   []CUDACard `json:"cards,omitempty"`
	Lacks   []string   `json:"lacks,omitempty" bundle:"code"` // functions
}

// CUDACard is a card as CUDA numbers it.
type CUDACard struct {
	Index       int    `json:"index"`
	Name        string `json:"name" bundle:"card"`
	UUID        string `json:"uuid,omitempty"`
	Bus         string `json:"bus,omitempty" bundle:"pci"`
	Compute     [2]int `json:"compute"`
	Memory      int64  `json:"memory"`
	Watchdog    bool   `json:"watchdog,omitempty"`
	Integrated  bool   `json:"integrated,omitempty"`
	ComputeMode int    `json:"compute_mode,omitempty"`
	Code        int    `json:"code,omitempty"` // CUresult of what failed on it
}

// Cgroup is what the control groups let this process have.
type Cgroup struct {
	Version   int      `json:"version,omitempty"`
	Memory    int64    `json:"memory,omitempty"` // limit in bytes; 0: none
	Used      int64    `json:"used,omitempty"`
	Kills     int64    `json:"oom_kills,omitempty"`
	CPUs      float64  `json:"cpus,omitempty"`                     // limit; 0: none
	Throttled float64  `json:"throttled,omitempty"`                // share of periods in which it was held
	PIDs      int64    `json:"pids,omitempty"`                     // limit; 0: none
	Devices   []string `json:"devices,omitempty" bundle:"devices"` // of version 1: what may be opened
}

// CPU is what processors there are.
type CPU struct {
	Model     string  `json:"model,omitempty" bundle:"card"`
	Count     int     `json:"count"`
	Allowed   int     `json:"allowed"`                          // this process may run on
	Affinity  string  `json:"affinity,omitempty" bundle:"cpus"` // those
	Nodes     int     `json:"numa_nodes,omitempty"`
	Governor  string  `json:"governor,omitempty" bundle:"word"`
	Scaling   string  `json:"scaling,omitempty" bundle:"word"` // the driver of clocks: "acpi-cpufreq"
	Steal     float64 `json:"steal,omitempty"`                 // share of time since the start that the hypervisor took
	Busy      float64 `json:"busy,omitempty"`                  // share of time since the start
	ThreadsOf int     `json:"threads_per_core,omitempty"`
}

// Memory is that of the host, in bytes.
type Memory struct {
	Total      int64 `json:"total,omitempty"`
	Available  int64 `json:"available,omitempty"`
	Overcommit int   `json:"overcommit,omitempty"` // vm.overcommit_memory
}

// Place is a file system that a training uses.
type Place struct {
	Role     string `json:"role" bundle:"word"` // "shm", "tmp", "home", "work", "cache"
	Path     string `json:"path,omitempty"`
	Type     string `json:"type,omitempty" bundle:"word"` // "tmpfs", "nfs", "ext4"
	Total    int64  `json:"total,omitempty"`
	Free     int64  `json:"free,omitempty"` // to this user
	Files    *int64 `json:"files_free,omitempty"`
	ReadOnly bool   `json:"read_only,omitempty"`
	NoExec   bool   `json:"no_exec,omitempty"`
	Writable *bool  `json:"writable,omitempty"`
	Stale    int    `json:"stale,omitempty"`       // nccl-* files of processes that are gone, of shm
	StaleB   int64  `json:"stale_bytes,omitempty"` //
	Errno    string `json:"errno,omitempty" bundle:"word"`
}

// Interface is a network interface, or a port of InfiniBand.
type Interface struct {
	Name string `json:"name" bundle:"interface"`
	Up   bool   `json:"up"`
	IB   bool   `json:"ib,omitempty"`
}

// Fabric is what connects the cards of a machine with NVSwitches.
type Fabric struct {
	Switches int   `json:"switches,omitempty"`
	Manager  bool  `json:"manager,omitempty"` // nv-fabricmanager runs
	Tool     *Tool `json:"tool,omitempty"`    // its program
	IMEX     bool  `json:"imex,omitempty"`    // nvidia-imex runs
	Channels *int  `json:"imex_channels,omitempty"`
}

// MPS is the service by which processes share a card.
type MPS struct {
	Pipe    bool `json:"pipe,omitempty"`    // its control pipe is there
	Control bool `json:"control,omitempty"` // its daemon runs
	Server  bool `json:"server,omitempty"`
	UID     int  `json:"uid,omitempty"` // of the pipe
}

// Container is what a host has to lend cards to containers.
type Container struct {
	Docker   bool   `json:"docker,omitempty"`                      // its socket or settings are there
	Runtime  *bool  `json:"nvidia_runtime,omitempty"`              // daemon.json names it
	Cgroupfs bool   `json:"cgroupfs,omitempty"`                    // daemon.json asks for that driver of control groups
	Toolkit  bool   `json:"toolkit,omitempty"`                     // nvidia-ctk or nvidia-container-cli is there
	CDI      string `json:"cdi_driver,omitempty" bundle:"version"` // version of the driver that /etc/cdi/nvidia.yaml names
	CharLink *bool  `json:"char_links,omitempty"`                  // /dev/char has links to the nodes
	Restart  int64  `json:"manager_reloaded_s,omitempty"`          // seconds since systemd was told to reload
}

// Holder is a process that has the driver's nodes open.
type Holder struct {
	PID     int    `json:"pid"`
	UID     int    `json:"uid"`
	Command string `json:"command,omitempty"`
	Nodes   int    `json:"nodes"`                              // how many
	Library string `json:"library,omitempty" bundle:"version"` // version of the libcuda that it has mapped
}

// Process is a live process that was pointed at.
type Process struct {
	PID       int               `json:"pid"`
	UID       int               `json:"uid"`
	Command   string            `json:"command,omitempty"`
	State     string            `json:"state" bundle:"word"`          // R, S, D, Z, T …
	Wait      string            `json:"wait,omitempty" bundle:"word"` // what of the kernel it sleeps in
	Threads   int               `json:"threads,omitempty"`
	Stuck     int               `json:"stuck_threads,omitempty"` // in state D
	Resident  int64             `json:"resident,omitempty"`
	Nodes     []string          `json:"nodes,omitempty" bundle:"node"` // of the driver, that it has open
	Files     int               `json:"files,omitempty"`               // open files
	Libraries []Library         `json:"libraries,omitempty"`           // of NVIDIA's, that it has mapped
	Deleted   int               `json:"deleted,omitempty"`             // of them, those whose file was replaced since
	Limits    map[string]int64  `json:"limits,omitzero" bundle:"word"`
	Env       map[string]string `json:"env,omitzero" bundle:"env"`
	Affinity  string            `json:"affinity,omitempty" bundle:"cpus"`
	Allowed   int               `json:"allowed,omitempty"`
	Same      bool              `json:"same_cgroup,omitempty"`         // as this process
	Container bool              `json:"container,omitempty"`           // it runs in one
	Errno     string            `json:"errno,omitempty" bundle:"word"` // why more could not be read
}

// Deep is a part of what --deep ran.
type Deep struct {
	Device  string  `json:"device" bundle:"word"`
	Part    string  `json:"part" bundle:"word"` // "device", "op", "devices"
	Name    string  `json:"name" bundle:"word"`
	Cases   int     `json:"cases"`
	Failed  int     `json:"failed"`
	First   string  `json:"first,omitempty"`
	Skipped string  `json:"skipped,omitempty"`
	Code    int     `json:"code,omitempty"` // CUresult
	Seconds float64 `json:"seconds"`
}

// Answers are of programs that belong to the system, where no file tells.
type Answers struct {
	Registry bool `json:"registry,omitempty"` // Windows' list of adapters was read
	Metal    bool `json:"metal,omitempty"`    // macOS has a GPU that PyTorch's mps can use
}

package probe

import (
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/doctor"
	"github.com/warpline-ml/warpline/internal/nvkernel"
)

// wanted are nodes that are listed although they are missing.
var wanted = []string{"/dev/nvidiactl", "/dev/nvidia-uvm"}

func (p *prober) nodes() {
	if p.facts.OS != "linux" {
		return
	}
	paths := append([]string{}, wanted...)
	for _, name := range p.list("/dev") {
		if path := "/dev/" + name; strings.HasPrefix(name, "nvidia") && path != wanted[0] && path != wanted[1] && name != "nvidia-caps" && name != "nvidia-caps-imex-channels" {
			paths = append(paths, path)
		}
	}
	for _, name := range p.list("/dev/nvidia-caps") {
		paths = append(paths, "/dev/nvidia-caps/"+name)
	}
	for _, path := range paths {
		p.facts.Nodes = append(p.facts.Nodes, p.node(path))
	}
	if p.stat == nil && p.root == "" {
		p.ioctls()
	}
}

func (p *prober) node(path string) doctor.Node {
	if p.stat != nil {
		n := p.stat(path)
		n.Path = path
		return n
	}
	n := statNode(p.path(path))
	n.Path = path
	if n.There && !strings.Contains(path, "nvidia-caps/") {
		n.Open = opens(p.path(path))
	} else if n.There {
		n.Open = opensToRead(p.path(path))
	}
	return n
}

// slow is how long opening a node may take: that of a card wakes it if nobody keeps it awake.
const slow = 600 * time.Millisecond

// opens tells whether a node opens for reading and writing, or why not; "slow" if that is not known in time.
func opens(path string) string {
	return inTime(slow, "slow", func() string { return openNode(path) })
}

// longestCall is how long an ioctl may take: a driver that is stuck does not come back.
const longestCall = 2 * time.Second

// inTime is what f returns, or late if that takes too long; f then goes on by itself.
func inTime[T any](limit time.Duration, late T, f func() T) T {
	answer := make(chan T, 1)
	go func() { answer <- f() }()
	select {
	case a := <-answer:
		return a
	case <-time.After(limit):
		return late
	}
}

// ioctls asks the kernel's half of the driver.
func (p *prober) ioctls() {
	control, uvm := p.facts.Nodes[0], p.facts.Nodes[1]
	if control.Open == "ok" {
		p.facts.Control = inTime(longestCall, doctor.Control{Asked: true, Errno: "slow"}, func() doctor.Control { return controlOf(control.Path) })
	}
	if uvm.Open == "ok" {
		p.facts.UVM = inTime(longestCall, doctor.UVM{Asked: true, Errno: "slow"}, func() doctor.UVM {
			status, err := nvkernel.InitializeUVM(uvm.Path)
			return doctor.UVM{Asked: true, Status: status, Errno: errno(err)}
		})
	}
}

func controlOf(path string) doctor.Control {
	version, err := nvkernel.Version(path)
	c := doctor.Control{Asked: true, Version: version, Errno: errno(err)}
	list, err := nvkernel.Cards(path)
	if err != nil {
		c.Errno = errno(err)
		return c
	}
	c.Cards = new(len(list))
	return c
}

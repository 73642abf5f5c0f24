package probe

import (
	"errors"
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
	answer := make(chan string, 1)
	go func() { answer <- openNode(path) }()
	select {
	case a := <-answer:
		return a
	case <-time.After(slow):
		return "slow"
	}
}

// ioctls asks the kernel's half of the driver.
func (p *prober) ioctls() {
	control, uvm := p.facts.Nodes[0], p.facts.Nodes[1]
	if control.Open == "ok" {
		c := &p.facts.Control
		c.Asked = true
		version, err := nvkernel.Version(control.Path)
		c.Version, c.Errno = version, errno(err)
		if list, err := nvkernel.Cards(control.Path); err == nil {
			c.Cards = new(len(list))
		} else {
			c.Errno = errno(errors.Join(err))
		}
	}
	if uvm.Open == "ok" {
		status, err := nvkernel.InitializeUVM(uvm.Path)
		p.facts.UVM = doctor.UVM{Asked: true, Status: status, Errno: errno(err)}
	}
}

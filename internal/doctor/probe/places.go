package probe

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/warpline-ml/warpline/internal/doctor"
)

func (p *prober) places() {
	home, _ := os.UserHomeDir()
	work, _ := os.Getwd()
	cache := p.facts.Env["CUDA_CACHE_PATH"]
	if cache == "" && home != "" {
		cache = filepath.Join(home, ".nv", "ComputeCache")
	}
	for _, place := range []struct{ role, path string }{{"shm", "/dev/shm"}, {"tmp", os.TempDir()}, {"home", home}, {"work", work}, {"cache", cache}} {
		if place.path == "" || place.role == "shm" && p.facts.OS != "linux" {
			continue
		}
		d := doctor.Place{Role: place.role, Path: place.path}
		late := d
		late.Errno = "slow"
		d = inTime(longestCall/2, late, func() doctor.Place { return p.filesystem(place.role, place.path) })
		if place.role == "shm" {
			p.stale(&d)
		}
		p.facts.Places = append(p.facts.Places, d)
	}
}

func (p *prober) filesystem(role, path string) doctor.Place {
	d := doctor.Place{Role: role, Path: path}
	filesystem(p.existing(path), &d)
	return d
}

// existing is a folder or the nearest one above it that is there.
func (p *prober) existing(dir string) string {
	for !p.there(dir) && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
	}
	return p.path(dir)
}

// stale counts files of NCCL that no process has open.
func (p *prober) stale(d *doctor.Place) {
	var all []string
	for _, name := range p.list("/dev/shm") {
		if strings.HasPrefix(name, "nccl-") {
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		return
	}
	held := p.mapped("/dev/shm/nccl-")
	for _, name := range all {
		if info, err := os.Stat(p.path("/dev/shm/" + name)); err == nil && !held["/dev/shm/"+name] {
			d.Stale++
			d.StaleB += info.Size()
		}
	}
}

func (p *prober) network() {
	for _, name := range p.list("/sys/class/net") {
		state := p.read("/sys/class/net/" + name + "/operstate")
		p.facts.Network = append(p.facts.Network, doctor.Interface{Name: name, Up: state == "up" || name == "lo" || state == "unknown"})
	}
	for _, card := range p.list("/sys/class/infiniband") {
		for _, port := range p.list("/sys/class/infiniband/" + card + "/ports") {
			state := p.read("/sys/class/infiniband/" + card + "/ports/" + port + "/state")
			p.facts.Network = append(p.facts.Network, doctor.Interface{Name: card + ":" + port, IB: true, Up: strings.Contains(state, "ACTIVE")})
		}
	}
}

package joblog

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
)

// transport is how NCCL says that ranks talk.
type transport struct {
	nodes  map[string]bool
	socket int    // channels over sockets between nodes
	ib     int    // channels over InfiniBand
	hasIB  bool   // a device was found
	off    string // the variable that turns InfiniBand off
	iface  string // that is used, where it is one that other nodes cannot reach
	quote  string
}

var (
	viaNet    = regexp.MustCompile(`NCCL INFO Channel \d+.* via NET/(Socket|IB)`)
	usingIB   = regexp.MustCompile(`NCCL INFO NET/IB ?: Using \[0\]`)
	usingSock = regexp.MustCompile(`NCCL INFO (?:NET/Socket ?: Using|Bootstrap ?: Using) (?:\[\d+\])?(\w[\w.-]*):`)
	ibOff     = regexp.MustCompile(`NCCL_IB_DISABLE set by environment to 1`)
)

// add takes a line of NCCL.
func (t *transport) add(text, node string) {
	if node != "" {
		if t.nodes == nil {
			t.nodes = map[string]bool{}
		}
		if len(t.nodes) < 1<<12 {
			t.nodes[node] = true
		}
	}
	if !strings.Contains(text, "NET/") && !strings.Contains(text, "Bootstrap") && !strings.Contains(text, "NCCL_IB") {
		return
	}
	switch m := viaNet.FindStringSubmatch(text); {
	case m != nil && m[1] == "Socket":
		t.socket++
		if t.quote == "" {
			t.quote = strings.TrimSpace(text)
		}
	case m != nil:
		t.ib++
	case usingIB.MatchString(text):
		t.hasIB = true
	case ibOff.MatchString(text):
		t.off = "NCCL_IB_DISABLE=1"
	default:
		if m := usingSock.FindStringSubmatch(text); m != nil && unreachable(m[1]) {
			t.iface = m[1]
		}
	}
}

// unreachable tells that an interface leads to no other node.
func unreachable(name string) bool {
	return slices.ContainsFunc([]string{"lo", "docker", "virbr", "veth", "br-", "cni", "flannel", "tailscale", "tun"}, func(p string) bool { return name == p || strings.HasPrefix(name, p) && p != "lo" })
}

// join takes what another log says.
func (t *transport) join(o *transport) {
	if t.nodes == nil {
		t.nodes = map[string]bool{}
	}
	maps.Copy(t.nodes, o.nodes)
	t.socket, t.ib, t.hasIB = t.socket+o.socket, t.ib+o.ib, t.hasIB || o.hasIB
	if o.off != "" {
		t.off = o.off
	}
	if o.iface != "" {
		t.iface = o.iface
	}
	if t.quote == "" {
		t.quote = o.quote
	}
}

// findings are of ranks that talk over a slower way than there is.
func (t *transport) findings(int) (all []finding.Finding) {
	if t.socket > 0 && (t.hasIB || t.ib > 0 || t.off != "") {
		f := finding.Finding{Rule: "R36", Name: "slow-transport", Title: fmt.Sprintf("%d channels between nodes go over TCP sockets although there is InfiniBand", t.socket),
			Evidence: []finding.Evidence{{Name: "channels", Value: t.socket, Text: t.quote}},
			Fix:      "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET says why; NCCL_IB_HCA names the devices that NCCL may take",
			Gain:     finding.Gain{Text: "the time of collectives: sockets reach a tenth to a half of what InfiniBand does"}, Confidence: finding.High, DisprovedBy: "ib_write_bw between the nodes is no quicker than iperf3"}
		if t.off != "" {
			f.Fix = "unset NCCL_IB_DISABLE: the environment turns InfiniBand off"
			f.Evidence = append(f.Evidence, finding.Evidence{Name: "variable", Value: t.off, Text: t.off + " is set"})
		}
		all = append(all, f)
	}
	if t.iface != "" && len(t.nodes) > 1 {
		all = append(all, finding.Finding{Rule: "D46", Name: "wrong-interface", Title: fmt.Sprintf("NCCL talks over %s, which leads to no other node", t.iface),
			Evidence: []finding.Evidence{{Name: "interface", Value: t.iface, Text: "NCCL chose " + t.iface}},
			Fix:      "NCCL_SOCKET_IFNAME=NAME of the interface that leads to the other nodes (ip -br addr)",
			Gain:     finding.Gain{Text: "the job starts, or collectives become as quick as the network"}, Confidence: finding.Medium, DisprovedBy: "the other nodes reach the address of " + t.iface})
	}
	return all
}

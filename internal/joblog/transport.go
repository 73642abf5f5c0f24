package joblog

import (
	"cmp"
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
	with   map[string]bool // nodes that found InfiniBand
	no     map[string]bool // nodes that found none
	master string          // where the ranks meet, where that is an address of each node itself
	span   int             // nodes that a launcher says it starts
	socket int             // channels over sockets between nodes
	ib     int             // channels over InfiniBand
	hasIB  bool            // a device was found
	off    string          // the variable that turns InfiniBand off
	iface  string          // that is used, where it is one that other nodes cannot reach
	quote  string
}

var (
	viaNet    = regexp.MustCompile(`NCCL INFO Channel \d+.* via NET/(Socket|IB)`)
	usingIB   = regexp.MustCompile(`NCCL INFO NET/IB ?: Using \[0\]`)
	withoutIB = regexp.MustCompile(`NCCL INFO NET/IB ?: No device found`)
	usingSock = regexp.MustCompile(`NCCL INFO (?:NET/Socket ?: Using|Bootstrap ?: Using) (?:\[\d+\])?(\w[\w.-]*):([\d.]*)`)
	masterAt  = regexp.MustCompile(`(?i)\b(?:MASTER_ADDR|rdzv[_-]endpoint)['"]?\s*[=: ]\s*['"]?((?:127\.\d+\.\d+\.\d+|localhost)\b(?::\d+)?)`)
	spanned   = regexp.MustCompile(`(?i)(?:\b|_)(?:nnodes|max[_-]nodes|job_num_nodes)['"]?\s*[=: ]\s*(?:\d+:)?(\d+)\b`)
	ibOff     = regexp.MustCompile(`NCCL_IB_DISABLE set by environment to 1`)
)

// mostNodes are told apart.
const mostNodes = 1 << 12

// mark puts a node into a set.
func mark(set *map[string]bool, node string) {
	if *set == nil {
		*set = map[string]bool{}
	}
	if node != "" && len(*set) < mostNodes {
		(*set)[node] = true
	}
}

// meets takes a line that may say where ranks meet, and on how many nodes they are.
func (t *transport) meets(text string) {
	if m := masterAt.FindStringSubmatch(text); m != nil {
		t.master = m[1]
	}
	if m := spanned.FindStringSubmatch(text); m != nil {
		t.span = max(t.span, number(m[1]))
	}
}

// add takes a line of NCCL.
func (t *transport) add(text, node string) {
	mark(&t.nodes, node)
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
		mark(&t.with, node)
	case withoutIB.MatchString(text):
		mark(&t.no, node)
	case ibOff.MatchString(text):
		t.off = "NCCL_IB_DISABLE=1"
	default:
		if m := usingSock.FindStringSubmatch(text); m != nil && unreachable(m[1]) {
			t.iface = m[1]
		} else if m != nil && strings.HasPrefix(m[2], "127.") {
			t.iface = m[1] + " by the address " + m[2]
		}
	}
}

// unreachable tells that an interface leads to no other node.
func unreachable(name string) bool {
	return slices.ContainsFunc([]string{"lo", "docker", "virbr", "veth", "br-", "cni", "flannel", "tailscale", "tun"}, func(p string) bool { return name == p || strings.HasPrefix(name, p) && p != "lo" })
}

// join takes what another log says.
func (t *transport) join(o *transport) {
	for _, sets := range [][2]*map[string]bool{{&t.nodes, &o.nodes}, {&t.with, &o.with}, {&t.no, &o.no}} {
		mark(sets[0], "")
		maps.Copy(*sets[0], *sets[1])
	}
	t.master, t.span = cmp.Or(t.master, o.master), max(t.span, o.span)
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
	return append(append(all, t.loopback()...), t.uneven()...)
}

// loopback is that ranks of several nodes are to meet at an address by which each node reaches only itself.
func (t *transport) loopback() []finding.Finding {
	n := max(t.span, len(t.nodes))
	if t.master == "" || n < 2 {
		return nil
	}
	return []finding.Finding{{Rule: "D46", Name: "loopback-master", Title: fmt.Sprintf("ranks of %d nodes are to meet at %s, by which each node reaches only itself", n, t.master),
		Evidence: []finding.Evidence{{Name: "master", Value: t.master, Text: "the ranks meet at " + t.master}, {Name: "nodes", Value: n, Text: fmt.Sprintf("%d nodes", n)}},
		Fix:      "MASTER_ADDR (or --rdzv-endpoint) = the first node's address on the network, on every node; if it is a name, getent hosts NAME must not give 127.x (a line of /etc/hosts)",
		Gain:     finding.Gain{Text: "the job starts"}, Confidence: finding.High, DisprovedBy: "every node starts a job of its own on purpose"}}
}

// uneven is that some nodes found InfiniBand and others none: then all of them talk as the slowest.
func (t *transport) uneven() []finding.Finding {
	var lack []string
	for _, node := range slices.Sorted(maps.Keys(t.no)) {
		if !t.with[node] {
			lack = append(lack, node)
		}
	}
	if len(lack) == 0 || len(t.with) == 0 {
		return nil
	}
	names := strings.Join(lack[:min(8, len(lack))], ", ")
	return []finding.Finding{{Rule: "D46", Name: "node-without-infiniband", Title: fmt.Sprintf("%s found no InfiniBand device, and %d of the others did: all talk the slower way, or the job hangs", names, len(t.with)),
		Evidence: []finding.Evidence{{Name: "without", Value: lack, Text: fmt.Sprintf("NET/IB : No device found, on %s", names)},
			{Name: "with", Value: slices.Sorted(maps.Keys(t.with))[:min(8, len(t.with))], Text: fmt.Sprintf("NET/IB : Using, on %d nodes", len(t.with))}},
		Fix:  fmt.Sprintf("on %s: ibstat, and cat /sys/class/infiniband/*/ports/*/state (\"4: ACTIVE\"); in a container --device=/dev/infiniband and --ulimit memlock=-1; or leave it out of the job", lack[0]),
		Gain: finding.Gain{Text: "the time of collectives: sockets reach a tenth to a half of what InfiniBand does"}, Confidence: finding.High, DisprovedBy: "ibstat shows an active port there: then NCCL_IB_HCA or the container hides it"}}
}

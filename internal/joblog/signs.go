package joblog

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/errortext"
)

// class is what kind of an event it is, in the order in which it is believed to be the root where times do not tell.
type class int

const (
	hardware    class = iota // the machine is broken
	outside                  // the scheduler, a person, another job ended it
	host                     // the host killed or starved it
	program                  // the program's own error
	setup                    // driver, libraries, addresses: it never came to compute
	network                  // ranks could not talk
	exit                     // an exit status, and no word of why
	hang                     // ranks waited for each other
	consequence              // of something else
)

// ofText are the classes of error texts.
var ofText = map[errortext.Class]class{
	errortext.Program: program, errortext.Host: host, errortext.Hardware: hardware, errortext.Setup: setup,
}

// sign is a line by which launchers, schedulers and NCCL say that something ended.
type sign struct {
	name    string
	class   class
	word    string // every such line has it, or one of several between bars
	pattern *regexp.Regexp
	take    func(e *Event, m []string) // what the parentheses held; may be nil
	says    string                     // what it means
	fix     string
}

var signs = []sign{
	{"time-limit", outside, "CANCELLED AT", regexp.MustCompile(`slurmstepd: error: \*\*\* (?:JOB|STEP) \S+ ON (\S+) CANCELLED AT (\S+) DUE TO TIME LIMIT`), cancelled,
		"the job came to its time limit", "start it again from its last checkpoint; ask for more time (--time), or let it save on SIGUSR1 (--signal=B:USR1@120)"},
	{"preempted", outside, "CANCELLED AT", regexp.MustCompile(`slurmstepd: error: \*\*\* (?:JOB|STEP) \S+ ON (\S+) CANCELLED AT (\S+) DUE TO PREEMPTION`), cancelled,
		"the job was preempted", "start it again from its last checkpoint (sbatch --requeue does it by itself)"},
	{"node-failure", hardware, "Node failure on", regexp.MustCompile(`srun: error: Node failure on (\S+)`), onNode,
		"the scheduler lost the node", "drain it and start the job again elsewhere: scontrol update nodename=NODE state=drain reason=\"node failure\""},
	{"node-lost", hardware, "NODE FAIL", regexp.MustCompile(`ON (\S+) CANCELLED AT \S+ DUE TO NODE FAIL`), onNode,
		"the scheduler lost the node", "drain it and start the job again elsewhere: scontrol update nodename=NODE state=drain reason=\"node failure\""},
	{"cancelled", outside, "CANCELLED AT", regexp.MustCompile(`slurmstepd: error: \*\*\* (?:JOB|STEP) \S+ ON (\S+) CANCELLED AT (\S+) \*\*\*`), late(cancelled),
		"the job was cancelled", "start it again; sacct -j JOB -o State,Comment says by whom"},
	{"terminal-closed", outside, "death signal", regexp.MustCompile(`Received (?:1|Signals\.SIGHUP) death signal`), nil,
		"the terminal that started it was closed (SIGHUP)", "start it again under tmux, nohup or the scheduler"},
	{"terminated", outside, "death signal", regexp.MustCompile(`Received (?:15|2|Signals\.SIG\w+) death signal`), nil,
		"it was told to end from outside (SIGTERM)", "start it again from its last checkpoint; the scheduler's log says who sent it"},
	{"interrupted", outside, "SignalException", regexp.MustCompile(`SignalException: Process \d+ got signal: (\d+)`), nil,
		"it was told to end from outside", "start it again from its last checkpoint; the scheduler's log says who sent the signal"},
	{"srun-oom", host, "Out Of Memory", regexp.MustCompile(`srun: error: (\S+): tasks? ([\d,-]+): Out Of Memory`), srunTask,
		"the host's memory that the job may use ran out", "ask for more (--mem), or use fewer loader workers"},
	{"srun-killed", exit, "srun: error", regexp.MustCompile(`srun: error: (\S+): tasks? ([\d,-]+): Killed`), signalled(9, srunTask), "", ""},
	{"srun-exit", exit, "srun: error", regexp.MustCompile(`srun: error: (\S+): tasks? ([\d,-]+): Exited with exit code (\d+)`), func(e *Event, m []string) { srunTask(e, m); e.Exit = number(m[3]) }, "", ""},
	{"srun-segfault", exit, "srun: error", regexp.MustCompile(`srun: error: (\S+): tasks? ([\d,-]+): Segmentation fault`), signalled(11, srunTask), "", ""},
	{"srun-bus", exit, "srun: error", regexp.MustCompile(`srun: error: (\S+): tasks? ([\d,-]+): Bus error`), signalled(7, srunTask), "", ""},
	{"srun-terminated", consequence, "srun: error", regexp.MustCompile(`srun: error: (\S+): tasks? ([\d,-]+): (?:Terminated|Aborted)`), nil, "", ""},
	{"elastic-exit", exit, "failed (exitcode", regexp.MustCompile(`failed \(exitcode: (-?\d+)\) local_rank: (\d+)`), func(e *Event, m []string) { e.Exit, _ = strconv.Atoi(m[1]); e.Local = number(m[2]) }, "", ""},
	{"deepspeed-exit", exit, "exits with return code", regexp.MustCompile(`exits with return code = (-?\d+)`), func(e *Event, m []string) { e.Exit, _ = strconv.Atoi(m[1]) }, "", ""},
	{"spawn-exit", exit, "terminated with signal", regexp.MustCompile(`ProcessExitedException: process (\d+) terminated with signal SIG(\w+)`), func(e *Event, m []string) { e.Local, e.Exit = number(m[1]), -signals[m[2]] }, "", ""},
	{"shell-killed", exit, "Killed", regexp.MustCompile(`^(?:\S+: line \d+: +\d+ )?Killed\b`), signalled(9, nil), "", ""},
	{"shell-segfault", exit, "Segmentation fault", regexp.MustCompile(`(?:^|line \d+: +\d+ |Fatal Python error: )Segmentation fault`), signalled(11, nil), "", ""},
	{"shell-bus", exit, "Bus error", regexp.MustCompile(`(?:^|line \d+: +\d+ |Fatal Python error: )Bus error`), signalled(7, nil), "", ""},
	{"port-in-use", setup, "ddress already in use|EADDRINUSE", regexp.MustCompile(`EADDRINUSE|[Aa]ddress already in use`), nil,
		"the port that the ranks meet at is taken, by an earlier run that still lives or by another job", "pkill the earlier run, or take a free port: torchrun --standalone, or --rdzv-endpoint=HOST:0, or another MASTER_PORT"},
	{"no-rendezvous", network, "client socket has|Rendezvous|Timed out initializing|timed out after", regexp.MustCompile(`The client socket has (?:timed out|failed to connect)|RendezvousTimeoutError|RendezvousConnectionError|Timed out initializing process group|timed out after \d+ ?ms? while (?:trying to connect|waiting for clients)`), nil,
		"ranks did not find each other at the start", "see that MASTER_ADDR resolves to an address that all nodes reach (not 127.0.x.x), that the port is open, and that all nodes were started: nc -vz $MASTER_ADDR $MASTER_PORT"},
	{"infiniband", network, "NET/IB", regexp.MustCompile(`NCCL WARN NET/IB ?: Got completion from peer (\S+) with (?:status|error)[= ](\d+)`), func(e *Event, m []string) { e.Peer = m[1] },
		"InfiniBand gave up on a peer: a link or the peer itself went away", "start it again without the node that the other ranks' errors name; ibstat and the switch's counters show a link that flaps"},
	{"nccl-timeout", network, "NCCL WARN", regexp.MustCompile(`NCCL WARN .*(?:Connection timed out|No route to host|Connection refused|ncclNetError|Timeout waiting)`), nil,
		"NCCL could not reach a peer", "see that the interface is right (NCCL_SOCKET_IFNAME) and no firewall stands between the nodes"},
	{"mismatch", hang, "Detected mismatch between collectives", regexp.MustCompile(`Detected mismatch between collectives on ranks\. ?(.*)`), func(e *Event, m []string) { e.Text = m[0] }, "ranks called different collectives", ""},
	{"barrier", hang, "monitoredBarrier", regexp.MustCompile(`[Rr]anks? ([\d, ]+) failed to pass monitoredBarrier`), func(e *Event, m []string) { e.Missing = ranks(m[1]) }, "ranks did not come to a barrier", ""},
	{"remote-error", consequence, "emote", regexp.MustCompile(`remote process exited or there was a network error|ncclRemoteError|Connection closed by remote peer|closed by peer|Connection closed by localRank|remote peer`), nil, "", ""},
	{"nccl-unexplained", consequence, "unhandled ", regexp.MustCompile(`unhandled (?:system|cuda) error(?: \(run with|, NCCL version)`), nil,
		"NCCL failed, and the text does not say why", "NCCL_DEBUG=INFO with the same command: the line with NCCL WARN before the error names the cause; then warpline diagnose on the logs of all ranks"},
	{"reset", consequence, "onnection reset", regexp.MustCompile(`[Cc]onnection reset by peer`), nil, "", ""},
	{"aborted", consequence, "communicator was aborted|watchdog thread terminated|core dumped|Abort COMPLETE", regexp.MustCompile(`(?:NCCL communicator was aborted|Process group watchdog thread terminated|Aborted \(core dumped\)|Abort COMPLETE)`), nil, "", ""},
	{"watchdog-ends", consequence, "watchdog thread", regexp.MustCompile(`watchdog thread terminated with exception`), nil, "", ""},
	{"process-down", consequence, "process down", regexp.MustCompile(`taking the entire process down`), nil, "", ""},
	{"nccl-failed", consequence, "Some NCCL operations", regexp.MustCompile(`Some NCCL operations have failed`), nil, "", ""},
	{"store-gone", consequence, "Vector failed|Value failed|Bytes failed|failed to recv|wait timeout after", regexp.MustCompile(`(?:recvVector|recvValue|sendBytes|recvBytes) failed|failed to recv|wait timeout after \d+ms, keys`), nil, "", ""},
	{"broken-pipe", consequence, "roken pipe", regexp.MustCompile(`[Bb]roken pipe`), nil, "", ""},
	{"closing", consequence, "closing signal", regexp.MustCompile(`Sending process \d+ closing signal`), nil, "", ""},
	{"killing", consequence, "Killing subprocess", regexp.MustCompile(`Killing subprocess \d+`), nil, "", ""},
	{"terminate", consequence, "terminate called", regexp.MustCompile(`terminate called after throwing`), nil, "", ""},
	{"step-aborted", consequence, "Job step aborted", regexp.MustCompile(`srun: Job step aborted`), nil, "", ""},
}

// signals are by name.
var signals = map[string]int{"HUP": 1, "INT": 2, "ABRT": 6, "BUS": 7, "FPE": 8, "KILL": 9, "SEGV": 11, "TERM": 15}

func onNode(e *Event, m []string) {
	for _, n := range m[1:] {
		if n != "" {
			e.Node = n
		}
	}
}

// cancelled takes the node and the time of a line of SLURM.
func cancelled(e *Event, m []string) {
	e.Node = m[1]
	if o, _ := originOf(m[2] + " "); !o.at.IsZero() {
		e.At = o.at
	}
}

// late makes an event one that does not end what had failed before: SLURM cancels the other tasks of a step.
func late(take func(*Event, []string)) func(*Event, []string) {
	return func(e *Event, m []string) { take(e, m); e.Late = true }
}

// srunTask takes node and task.
func srunTask(e *Event, m []string) {
	e.Node = m[1]
	if r := ranks(m[2]); len(r) > 0 {
		e.Rank = r[0]
	}
}

// signalled is an exit by a signal.
func signalled(n int, take func(*Event, []string)) func(*Event, []string) {
	return func(e *Event, m []string) {
		if take != nil {
			take(e, m)
		}
		e.Exit = -n
	}
}

// ranks reads "0-3,5".
func ranks(text string) (all []int) {
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		from, to, both := strings.Cut(part, "-")
		a := number(from)
		b := a
		if both {
			b = number(to)
		}
		for r := a; r >= 0 && r <= b && len(all) < 1<<12; r++ {
			all = append(all, r)
		}
	}
	return all
}

// followed are exceptions of Python that only say that another process has failed.
var followed = regexp.MustCompile(`DistBackendError|ChildFailedError|CalledProcessError|ProcessRaisedException|ProcessExitedException|SignalException|KeyboardInterrupt|SystemExit|ConnectionResetError|BrokenPipeError|DistNetworkError|DistStoreError|NCCL communicator was aborted|remote process exited|Connection (?:closed|reset) by peer|process group watchdog|NCCL error|EOFError$|gloo.*(?:closed|reset)|Timed out (?:after|initializing)|broken pipe`)

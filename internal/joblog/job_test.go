package joblog

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/finding"
)

func TestPrefixes(t *testing.T) {
	for _, c := range []struct {
		line  string
		rank  int
		local int
		node  string
		at    string
		text  string
	}{
		{"[rank3]: Traceback", 3, -1, "", "", "Traceback"},
		{"[rank1]:[E626 06:24:44.903881913 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog", 1, -1, "", "06-26 06:24:44", "Watchdog"},
		{"[E ProcessGroupNCCL.cpp:737] [Rank 5] Watchdog", 5, -1, "", "", "Watchdog"},
		{"[rank0]:[E1206 18:44:12.715298746 ProcessGroupNCCL.cpp:607] x", 0, -1, "", "12-06 18:44:12", "x"},
		{"[default3]: Traceback", -1, 3, "", "", "Traceback"},
		{"[1,12]<stderr>:Traceback", 12, -1, "", "", "Traceback"},
		{" 7: Traceback", 7, -1, "", "", "Traceback"},
		{"[2023-04-14 13:11:27,885] [ERROR] [launch.py:434:sigkill_handler] x", -1, -1, "", "2023-04-14 13:11:27", "x"},
		{"E0325 20:57:27.620000 2606 site-packages/torch/distributed/elastic/multiprocessing/api.py:869] failed", -1, -1, "", "03-25 20:57:27", "failed"},
		{"ERROR:torch.distributed.elastic:failed", -1, -1, "", "", "torch.distributed.elastic:failed"},
		{"2022-12-28 16:13:02 [ERROR]  RuntimeError: x", -1, -1, "", "2022-12-28 16:13:02", "RuntimeError: x"},
		{"2025-01-21T04:41:44.283Z step 1", -1, -1, "", "2025-01-21 04:41:44", "step 1"},
		{"(RayTrainWorker pid=516378, ip=10.0.0.7) Traceback", -1, -1, "10.0.0.7", "", "Traceback"},
		{"[pod/trainer-node-0-1/node] [rank9]: x", 9, -1, "trainer-node-0-1", "", "x"},
		{"worker-0: [rank2]: x", 2, -1, "worker-0", "", "x"},
		{"msm-h200-2:4016:4653 [7] NCCL INFO x", -1, -1, "msm-h200-2", "", "NCCL INFO x"},
		{"train.py: x", -1, -1, "", "", "train.py: x"},
		{"RuntimeError: x", -1, -1, "", "", "RuntimeError: x"},
		{"[E1399 18:44:12.7 a.cpp:1] x", -1, -1, "", "", "x"},
		{"", -1, -1, "", "", ""},
	} {
		o, text := originOf(c.line)
		if o.rank != c.rank || o.local != c.local || o.node != c.node || o.at.String() != c.at || text != c.text {
			t.Errorf("%q: rank %d, local %d, node %q, %q, text %q", c.line, o.rank, o.local, o.node, o.at, text)
		}
	}
}

// said is the report of a log.
func said(t *testing.T, name, text string) *finding.Report {
	t.Helper()
	r, err := Reader{}.Diagnose(context.Background(), name, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestHealthyLogs are logs of trainings in which nothing is wrong, with words that look as if.
func TestHealthyLogs(t *testing.T) {
	for name, text := range map[string]string{
		"trainer":     "{'loss': 1.21, 'grad_norm': 0.51, 'learning_rate': 2e-05, 'epoch': 0.1}\n 12%|█▏        | 120/1000 [01:02<07:31,  1.95it/s]\r 13%|█▎        | 130/1000\nSaving model checkpoint to out/checkpoint-200\n***** Running Evaluation *****\n  Num examples = 200\n",
		"error rates": "epoch 3 train_error 0.12 val_error 0.15 error rate 1.2e-3\nepoch 4: top-1 error 12.1 memory 5432 device cuda:0\n",
		"deepspeed":   "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768\n[2023-04-14 13:11:27,885] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=1, lr=[1e-05]\n[2023-04-14 13:20:27,885] [INFO] [launch.py:347:main] Process 1330 exits successfully.\n",
		"nccl":        "node1:3063:3066 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.5<0>\nnode1:3063:3066 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.5<0>\nnode1:3063:3066 [0] NCCL INFO comm 0x5 rank 0 nranks 8 cudaDev 0 busId 1a000 - Init COMPLETE\nnode1:3063:3066 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC\n",
		"nccl advice": "[rank0]:[W801 13:23:20.100 ProcessGroupNCCL.cpp:4115] [PG ID 0 PG GUID 0 Rank 0]  using GPU 0 as device used by this process is currently unknown. This can potentially cause a hang if this rank to GPU mapping is incorrect.\n[rank0]: step 1 loss 2\n[rank1]: step 1 loss 2\n",
		"lightning":   "GPU available: True (cuda), used: True\nTPU available: False, using: 0 TPU cores\nInitializing distributed: GLOBAL_RANK: 0, MEMBER: 1/8\nEpoch 0: 100%|██████████| 100/100 [00:10<00:00,  9.8it/s, v_num=0, train_loss=0.3]\n`Trainer.fit` stopped: `max_epochs=1` reached.\n",
		"srun":        "0: epoch 1 loss 2.0\n1: epoch 1 loss 2.0\n2: epoch 1 loss 2.0\n0: Exception handling enabled\n1: memory allocated 12.1 GiB\n",
		"caught":      "step 1 loss 2\nWarning: tokenizer has no pad token, expected one\nretry: connection to the hub failed, trying again (1 of 5)\nstep 2 loss 1\n",
	} {
		r := said(t, "train.log", text)
		if len(r.Findings) != 0 {
			t.Errorf("%s: %v", name, titles(r.Findings))
		}
		if len(r.Checked) == 0 {
			t.Errorf("%s: nothing is said of what was looked at", name)
		}
	}
}

const pipeline = "[rank%d]: Traceback (most recent call last):\n[rank%d]:   File \"/home/u/train.py\", line 9, in main\n"

// TestFirstFailure walks what makes one failure the root and not another.
func TestFirstFailure(t *testing.T) {
	for _, c := range []struct {
		name string
		text string
		rule string
		want string // in the title
	}{
		{"the earlier time, though it stands behind", "[rank1]:[E626 06:24:44.9 a.cpp:1] RuntimeError: CUDA error: an illegal memory access was encountered\n" +
			"[rank0]:[E626 06:20:00.9 a.cpp:1] RuntimeError: CUDA error: uncorrectable ECC error encountered\n", "J02", "drain this node: rank 0"},
		{"without times the first line", fmt.Sprintf(pipeline+"[rank2]: KeyError: 'a'\n", 2, 2) + fmt.Sprintf(pipeline+"[rank0]: ValueError: b\n", 0, 0), "J01", "rank 2 failed first: the program ended by its own error: KeyError: 'a'"},
		{"a peer's error is no root", "[rank0]: torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error\n" + fmt.Sprintf(pipeline+"[rank2]: KeyError: 'a'\n", 2, 2), "J01", "rank 2"},
		{"what fails after ranks began to wait is no root", "[rank0]:[E626 06:24:44.9 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.\n" +
			"[rank1]:[E626 06:24:44.9 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8, OpType=BROADCAST, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.\n" +
			"[rank1]:[E626 06:24:46.9 a.cpp:1] RuntimeError: CUDA error: unspecified launch failure\n", "R37", "fix the program: the call of rank 1 is broadcast number 8"},
		{"ranks that are behind", "[E ProcessGroupNCCL.cpp:458] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=96120, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 25624887 milliseconds before timing out.\n" +
			"[E ProcessGroupNCCL.cpp:458] [Rank 7] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=64088, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 25625251 milliseconds before timing out.\n", "R37", "behind is rank 7"},
		{"process groups count for themselves", "[rank0]:[E816 01:45:40.1 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=50, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600026 milliseconds before timing out.\n" +
			"[rank0]:[E816 01:45:40.1 ProcessGroupNCCL.cpp:1664] [PG 3 Rank 0] Exception (either an error or timeout) detected by watchdog at work: 50, last enqueued NCCL work: 50, last completed NCCL work: 49.\n" +
			"[rank4]:[E816 01:45:40.1 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=BROADCAST, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600016 milliseconds before timing out.\n" +
			"[rank4]:[E816 01:45:40.1 ProcessGroupNCCL.cpp:1664] [PG 4 Rank 0] Exception (either an error or timeout) detected by watchdog at work: 9, last enqueued NCCL work: 9, last completed NCCL work: 8.\n", "R37", "rank 0 waited in vain"},
		{"the table of torchrun names node and rank", "Traceback (most recent call last):\n  File \"/home/u/train.py\", line 9, in main\nKeyError: 'a'\n" +
			"Root Cause (first observed failure):\n[0]:\n  time      : 2025-05-21_15:43:03\n  host      : w7\n  rank      : 3 (local_rank: 3)\n  exitcode  : 1 (pid: 14750)\n  error_file: <N/A>\n  traceback : To enable traceback see: https://pytorch.org\n", "J01", "rank 3 (w7, 2025-05-21 15:43:03) failed first"},
		{"cancelled after a task had failed", "srun: error: n3: task 12: Killed\nslurmstepd: error: *** STEP 4.0 ON n3 CANCELLED AT 2024-04-20T09:09:37 ***\n", "J04", "rank 12 (n3) was killed"},
	} {
		r := said(t, "job.log", c.text)
		if len(r.Findings) == 0 || r.Findings[0].Rule != c.rule || !strings.Contains(r.Findings[0].Title, c.want) {
			t.Errorf("%s: %v", c.name, titles(r.Findings))
		}
	}
}

// TestSignAlone: a line that is no error text is judged in a text of one process too, and never called healthy.
func TestSignAlone(t *testing.T) {
	for text, want := range map[string]string{
		"node1:1234:1300 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.0.0.2<43210> failed : No route to host\n":                                                                                  "NCCL could not reach a peer",
		"torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use\n":         "the port that the ranks meet at is taken",
		"torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1333, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.18.1\n":            "NCCL failed, and the text does not say why",
		"RuntimeError: NCCL error in: ../torch/lib/c10d/ProcessGroupNCCL.cpp:911, unhandled cuda error, NCCL version 2.7.8\n":                                                                                          "NCCL failed, and the text does not say why",
		"RuntimeError: NCCL error in: x.cpp:911, unhandled cuda error, NCCL version 2.7.8\nTraceback (most recent call last):\n  File \"/home/u/train.py\", line 9, in main\nIndexError: index out of range in self\n": "an index is beyond",
	} {
		r := said(t, "pasted.txt", text)
		if len(r.Findings) == 0 || !strings.Contains(r.Findings[0].Title, want) {
			t.Errorf("%s: %v, %v", text, titles(r.Findings), r.Checked)
		}
	}
}

// TestSameMoment has two ranks that fail within a second: the report does not pretend to know.
func TestSameMoment(t *testing.T) {
	r := said(t, "job.log", "[rank1]:[E626 06:24:44.1 a.cpp:1] RuntimeError: CUDA error: an illegal memory access was encountered\n[rank0]:[E626 06:24:44.7 a.cpp:1] RuntimeError: CUDA error: an illegal memory access was encountered\n")
	f := r.Findings[0]
	if f.Confidence != finding.Medium || !strings.Contains(f.Evidence[len(f.Evidence)-1].Text, "clocks do not tell") {
		t.Errorf("%+v", f)
	}
}

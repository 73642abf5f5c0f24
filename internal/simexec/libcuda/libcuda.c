/* The libcuda.so.1 of programs under "warpline sim exec". It simulates nothing: it hands calls to the process that does.
 *
 * A function is its name and the registers and words of the stack that could be its arguments, fifteen at most. They go into the
 * thread's slot of a segment that both processes share; the other side reads what pointers name from this process's memory, writes
 * results there, and puts the answer into the slot. So nothing here knows what a function means, but for those few that give memory,
 * call back, or give functions.
 *
 * Nothing is linked: system calls are made here, and the symbols of the C library that are wanted may be missing. The library must
 * load wherever a program does.
 *
 * Compiled by build.sh. The layout of slot and segment is that of segment_linux.go. */

typedef unsigned long u64;
typedef unsigned int u32;

_Static_assert(sizeof(u64) == 8 && sizeof(void *) == 8, "words");

enum {
	SUCCESS = 0,
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	NOT_INITIALIZED = 3,
	DEINITIALIZED = 4,
	NO_DEVICE = 100,
	NOT_FOUND = 500,
};

#define EXPORT __attribute__((visibility("default")))
#define LOAD(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)

/* The system. */

#if defined(__x86_64__)
enum { SYS_write = 1, SYS_close = 3, SYS_mmap = 9, SYS_munmap = 11, SYS_getpid = 39, SYS_socket = 41, SYS_connect = 42, SYS_sendto = 44,
	SYS_recvfrom = 45, SYS_recvmsg = 47, SYS_getsockopt = 55, SYS_prctl = 157, SYS_gettid = 186, SYS_futex = 202 };
static long sys(long n, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f) {
	register u64 r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long r;
	__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return r;
}
#define PAUSE() __asm__ volatile("pause")
#elif defined(__aarch64__)
enum { SYS_close = 57, SYS_write = 64, SYS_futex = 98, SYS_prctl = 167, SYS_getpid = 172, SYS_gettid = 178, SYS_socket = 198,
	SYS_connect = 203, SYS_sendto = 206, SYS_recvfrom = 207, SYS_getsockopt = 209, SYS_recvmsg = 212, SYS_munmap = 215, SYS_mmap = 222 };
static long sys(long n, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f) {
	register u64 x8 __asm__("x8") = (u64)n, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c, x3 __asm__("x3") = d,
		x4 __asm__("x4") = e, x5 __asm__("x5") = f;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return (long)x0;
}
#define PAUSE() __asm__ volatile("yield")
#else
#error "another processor needs its system calls and its enter here"
#endif

#define P(x) ((u64)(x))

static u64 length(const char *s) {
	u64 n = 0;
	while (s[n]) n++;
	return n;
}

static int same(const char *a, const char *b) {
	while (*a && *a == *b) a++, b++;
	return *a == *b;
}

/* say tells the user what keeps the library from serving, once. */
static void say(const char *text) {
	static u32 said;
	if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED)) sys(SYS_write, 2, P(text), length(text), 0, 0, 0);
}

/* fork copies a session that cannot be used twice. */
static u32 process(void) { return (u32)sys(SYS_getpid, 0, 0, 0, 0, 0, 0); }

enum { FUTEX_WAIT = 0, FUTEX_WAKE = 1 };

static void wake(u32 *word) { sys(SYS_futex, P(word), FUTEX_WAKE, 1, 0, 0, 0); }

static void wait_while(u32 *word, u32 value) {
	struct { long s, ns; } second = {1, 0};
	sys(SYS_futex, P(word), FUTEX_WAIT, value, P(&second), 0, 0);
}

/* What both processes see. */

enum { IDLE = 0, ASKED = 1, ANSWERED = 2, LEFT = 3 };

enum { ARGUMENTS = 15 }; /* as many as cuTensorMapEncodeIm2col has */

struct slot {
	u32 state;      /* a futex */
	u32 owner;      /* a thread, 0 for none */
	u32 here, there; /* who sleeps: the thread, the other side */
	u64 name;
	u64 arguments[ARGUMENTS];
	int result;
	char pad[192 - 148];
};

enum { SLOTS = 255, VERSION = 2, TEXT_BYTES = 32 << 10 };

struct segment {
	u32 version, closed;
	char pad[184];
	struct slot slot[SLOTS];
	char text[TEXT_BYTES]; /* that the driver gives pointers to */
};

_Static_assert(sizeof(struct slot) == 192 && sizeof(struct segment) == 192 * (SLOTS + 1) + TEXT_BYTES, "segment_linux.go");

/* The session of this process. */

static u32 lock;
static u32 opened; /* the process that opened it; 0: none yet */
static struct segment *segment;
static int link = -1;
static u32 key; /* of the C library, with which threads tell their end; 0: none, otherwise one more than the key */
static __thread struct slot *mine;

#define WEAK __attribute__((weak, visibility("default")))
extern WEAK char **environ;
extern WEAK int pthread_key_create(u32 *, void (*)(void *));
extern WEAK int pthread_setspecific(u32, const void *);

static void enter_lock(void) {
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) PAUSE();
}
static void leave_lock(void) { __atomic_store_n(&lock, 0, __ATOMIC_RELEASE); }

/* place is where the other process listens: the value of WARPLINE_SIM_EXEC. */
static const char *place(void) {
	static const char name[] = "WARPLINE_SIM_EXEC=";
	if (!&environ || !environ) return 0;
	for (char **e = environ; *e; e++) {
		u64 i = 0;
		while (name[i] && (*e)[i] == name[i]) i++;
		if (!name[i]) return *e + i;
	}
	return 0;
}

/* dial connects, or gives -1. */
static int dial(const char *path) {
	struct { unsigned short family; char path[108]; } to = {1 /* AF_UNIX */, {0}};
	u64 n = length(path);
	if (n >= sizeof to.path) return -1;
	for (u64 i = 0; i < n; i++) ((volatile char *)to.path)[i] = path[i];
	long fd = sys(SYS_socket, 1, 1 /* SOCK_STREAM */ | 02000000 /* SOCK_CLOEXEC */, 0, 0, 0, 0);
	if (fd < 0) return -1;
	if (sys(SYS_connect, (u64)fd, P(&to), sizeof to, 0, 0, 0) < 0) {
		sys(SYS_close, (u64)fd, 0, 0, 0, 0, 0);
		return -1;
	}
	return (int)fd;
}

/* told sends a number to the other process. */
static int told(int fd, u64 word) {
	return sys(SYS_sendto, (u64)fd, P(&word), sizeof word, 040000 /* MSG_NOSIGNAL */, 0, 0) == sizeof word;
}

/* received takes the file descriptor that comes with one byte; -1 without. */
static int received(int fd) {
	char byte;
	struct { void *base; u64 n; } piece = {&byte, 1};
	struct { u64 n; int level, type, fd, pad; } control;
	struct { void *name; u32 names; u32 pad; void *pieces; u64 count; void *control; u64 controls; int flags; } message = {
		0, 0, 0, &piece, 1, &control, sizeof control, 0};
	if (sys(SYS_recvmsg, (u64)fd, P(&message), 0x40000000 /* MSG_CMSG_CLOEXEC */, 0, 0, 0) != 1) return -1;
	if (message.controls < 20 || control.level != 1 /* SOL_SOCKET */ || control.type != 1 /* SCM_RIGHTS */) return -1;
	return control.fd;
}

/* let_read lets the process at the other end read and write this one's memory, where Yama would not. */
static void let_read(int fd) {
	struct { int process, user, group; } peer;
	u32 size = sizeof peer;
	if (sys(SYS_getsockopt, (u64)fd, 1 /* SOL_SOCKET */, 17 /* SO_PEERCRED */, P(&peer), P(&size), 0) == 0)
		sys(SYS_prctl, 0x59616d61 /* PR_SET_PTRACER */, (u64)peer.process, 0, 0, 0, 0);
}

/* The first word that a connection says. */
#define HELLO (0x57a4b11e00000000 | VERSION)
#define FORKED 0x57a4b11eff000000

/* begin opens the session; it gives the result of the call that wanted it. */
static int begin(void) {
	const char *path = place();
	if (!path) {
		say("libcuda.so.1 of warpline: it serves programs that \"warpline sim exec\" runs, and this one runs alone\n");
		return NO_DEVICE;
	}
	int fd = dial(path);
	if (fd < 0) {
		say("libcuda.so.1 of warpline: the \"warpline sim exec\" that ran this program is gone\n");
		return NO_DEVICE;
	}
	let_read(fd);
	if (!told(fd, HELLO)) return NO_DEVICE;
	int memory = received(fd);
	if (memory < 0) return NO_DEVICE; /* the other side has said why */
	long at = sys(SYS_mmap, 0, sizeof(struct segment), 3 /* PROT_READ | PROT_WRITE */, 1 /* MAP_SHARED */, (u64)memory, 0);
	sys(SYS_close, (u64)memory, 0, 0, 0, 0, 0);
	if (at < 0 && at > -4096) return OUT_OF_MEMORY;
	segment = (struct segment *)at;
	link = fd;
	return told(fd, P(at)) ? SUCCESS : DEINITIALIZED;
}

/* gone is the end of a thread, which the C library tells. */
static void gone(void *slot) {
	struct slot *s = slot;
	if (opened != process()) return;
	STORE(&s->state, LEFT);
	wake(&s->state);
}

/* forked answers calls of a process that a fork made of one with a session, and tells of the first. */
static int forked(void) {
	static u32 said;
	if (said != process()) {
		said = process();
		int fd = place() ? dial(place()) : -1;
		char byte;
		if (fd >= 0 && told(fd, FORKED)) sys(SYS_recvfrom, (u64)fd, P(&byte), 1, 0, 0, 0); /* which ends when it is known */
		sys(SYS_close, (u64)fd, 0, 0, 0, 0, 0);
	}
	return NOT_INITIALIZED;
}

/* claim gives the thread a slot. */
static int claim(void) {
	enter_lock();
	int r = SUCCESS;
	if (opened == 0) {
		r = begin();
		if (r == SUCCESS) opened = process();
		if (r == SUCCESS && &pthread_key_create && &pthread_setspecific && pthread_key_create(&key, gone) == 0) key++;
	} else if (opened != process()) {
		leave_lock();
		return forked();
	}
	leave_lock();
	if (r != SUCCESS) return r;
	u32 thread = (u32)sys(SYS_gettid, 0, 0, 0, 0, 0, 0);
	for (u64 i = 0; i < SLOTS; i++) {
		u32 none = 0;
		struct slot *s = &segment->slot[i];
		if (!__atomic_compare_exchange_n(&s->owner, &none, thread, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) continue;
		if (!told(link, i)) return DEINITIALIZED;
		mine = s;
		if (key) pthread_setspecific(key - 1, s);
		return SUCCESS;
	}
	say("libcuda.so.1 of warpline: more than 255 threads call the driver\n");
	return OUT_OF_MEMORY;
}

/* hung is whether the other process has ended, or has closed the session. */
static int hung(void) {
	char byte;
	return LOAD(&segment->closed) || sys(SYS_recvfrom, (u64)link, P(&byte), 1, 0x42 /* MSG_PEEK | MSG_DONTWAIT */, 0, 0) == 0;
}

enum { SPINS = 4000 }; /* some tens of microseconds */

/* call asks for a function by its name and returns its answer. */
__attribute__((used)) int warpline_call(const char *name, const u64 *arguments) {
	struct slot *s = mine;
	if (!s || opened != process()) {
		int r = claim();
		if (r != SUCCESS) return r;
		s = mine;
	}
	if (LOAD(&segment->closed)) return DEINITIALIZED;
	s->name = P(name);
	for (int i = 0; i < ARGUMENTS; i++) s->arguments[i] = arguments[i];
	STORE(&s->state, ASKED);
	if (LOAD(&s->there)) wake(&s->state);
	for (int i = 0; i < SPINS && LOAD(&s->state) == ASKED; i++) PAUSE();
	while (LOAD(&s->state) == ASKED) {
		STORE(&s->here, 1);
		if (LOAD(&s->state) == ASKED) wait_while(&s->state, ASKED);
		STORE(&s->here, 0);
		if (LOAD(&s->state) == ASKED && hung()) return DEINITIALIZED;
	}
	int r = s->result;
	STORE(&s->state, IDLE);
	return r;
}

#define CALL(name, ...) warpline_call(name, (const u64[ARGUMENTS]){__VA_ARGS__})

/* The functions that are handed on: their names, which are what a call says; and a table of all, by distances, which need no
 * relocation. */

#define TEXT(name) \
	".pushsection .rodata.names,\"a\",@progbits\n" \
	"name_" name ": .asciz \"" name "\"\n" \
	".popsection\n"

#define ROW(name, since) \
	".pushsection .rodata.table,\"a\",@progbits\n" \
	".long name_" name " - .\n" \
	".long " name " - .\n" \
	".long " #since "\n" \
	".popsection\n"

#define HEAD(name) ".globl " name "\n.type " name ",@function\n.balign 4\n" name ":\n"

#if defined(__x86_64__)
#define STUB(name) HEAD(name) "lea name_" name "(%rip), %rax\njmp warpline_enter\n"
__asm__(".text\n"
	"warpline_enter:\n"
	"push %rbp\nmov %rsp, %rbp\nsub $128, %rsp\n"
	"mov %rdi, 0(%rsp)\nmov %rsi, 8(%rsp)\nmov %rdx, 16(%rsp)\nmov %rcx, 24(%rsp)\nmov %r8, 32(%rsp)\nmov %r9, 40(%rsp)\n"
	"mov 16(%rbp), %rdi\nmov %rdi, 48(%rsp)\nmov 24(%rbp), %rdi\nmov %rdi, 56(%rsp)\nmov 32(%rbp), %rdi\nmov %rdi, 64(%rsp)\n"
	"mov 40(%rbp), %rdi\nmov %rdi, 72(%rsp)\nmov 48(%rbp), %rdi\nmov %rdi, 80(%rsp)\nmov 56(%rbp), %rdi\nmov %rdi, 88(%rsp)\n"
	"mov 64(%rbp), %rdi\nmov %rdi, 96(%rsp)\nmov 72(%rbp), %rdi\nmov %rdi, 104(%rsp)\nmov 80(%rbp), %rdi\nmov %rdi, 112(%rsp)\n"
	"mov %rax, %rdi\nmov %rsp, %rsi\ncall warpline_call\nleave\nret\n");
#else
#define STUB(name) HEAD(name) "adrp x16, name_" name "\nadd x16, x16, :lo12:name_" name "\nb warpline_enter\n"
__asm__(".text\n"
	"warpline_enter:\n"
	"stp x29, x30, [sp, -144]!\nmov x29, sp\n"
	"stp x0, x1, [sp, 16]\nstp x2, x3, [sp, 32]\nstp x4, x5, [sp, 48]\nstp x6, x7, [sp, 64]\n"
	"ldp x0, x1, [sp, 144]\nstp x0, x1, [sp, 80]\nldp x0, x1, [sp, 160]\nstp x0, x1, [sp, 96]\n"
	"ldp x0, x1, [sp, 176]\nstp x0, x1, [sp, 112]\nldp x0, x1, [sp, 192]\nstp x0, x1, [sp, 128]\n"
	"mov x0, x16\nadd x1, sp, 16\nbl warpline_call\nldp x29, x30, [sp], 144\nret\n");
#endif

__asm__(".pushsection .rodata.table,\"a\",@progbits\n.balign 4\n.globl warpline_table\n.hidden warpline_table\nwarpline_table:\n.popsection\n");

#define FUNCTION(name, since) __asm__(TEXT(#name) STUB(#name) ROW(#name, since));
#include "functions.h"
#undef FUNCTION

/* Those that are written here are in the table too. */
#define HERE(name, since) __asm__(TEXT(#name) ROW(#name, since));

/* Pinned memory is the caller's, and the other side reads and writes it like any. Its length stands in a page before it. */
enum { PAGE = 1 << 16 };

static int host_alloc(void **out, u64 bytes, u64 flags) {
	if (!out) return INVALID_VALUE;
	if (bytes == 0 || bytes >> 46) return CALL("cuMemHostAlloc", 0, bytes, flags); /* which refuses it */
	long at = sys(SYS_mmap, 0, bytes + PAGE, 3, 0x22 /* MAP_PRIVATE | MAP_ANONYMOUS */, ~0ul, 0);
	if (at < 0 && at > -4096) return OUT_OF_MEMORY;
	*(u64 *)at = bytes + PAGE;
	int r = CALL("cuMemHostAlloc", (u64)at + PAGE, bytes, flags);
	if (r != SUCCESS) {
		sys(SYS_munmap, (u64)at, bytes + PAGE, 0, 0, 0, 0);
		return r;
	}
	*out = (void *)(at + PAGE);
	return SUCCESS;
}

HERE(cuMemHostAlloc, 0)
EXPORT int cuMemHostAlloc(void **out, u64 bytes, u32 flags) { return host_alloc(out, bytes, flags); }
HERE(cuMemAllocHost_v2, 0)
EXPORT int cuMemAllocHost_v2(void **out, u64 bytes) { return host_alloc(out, bytes, 0); }
HERE(cuMemAllocHost, 0)
EXPORT int cuMemAllocHost(void **out, u32 bytes) { return host_alloc(out, bytes, 0); }

HERE(cuMemFreeHost, 0)
EXPORT int cuMemFreeHost(void *p) {
	int r = CALL("cuMemFreeHost", P(p));
	if (r == SUCCESS) {
		u64 *at = (u64 *)(P(p) - PAGE);
		sys(SYS_munmap, P(at), *at, 0, 0, 0, 0);
	}
	return r;
}

/* Functions of the host run once what the stream was given before has been done, on the thread that asks. */

static int host_func(const char *name, u64 stream, void (*f)(void *), void *data) {
	if (!f) return INVALID_VALUE;
	int r = CALL(name, stream);
	if (r == SUCCESS) f(data);
	return r;
}

HERE(cuLaunchHostFunc, 0)
EXPORT int cuLaunchHostFunc(u64 stream, void (*f)(void *), void *data) { return host_func("cuLaunchHostFunc", stream, f, data); }
HERE(cuLaunchHostFunc_ptsz, 0)
EXPORT int cuLaunchHostFunc_ptsz(u64 stream, void (*f)(void *), void *data) { return host_func("cuLaunchHostFunc_ptsz", stream, f, data); }

static int add_callback(const char *name, u64 stream, void (*f)(u64, int, void *), void *data) {
	if (!f) return INVALID_VALUE;
	int r = CALL(name, stream);
	if (r == SUCCESS) f(stream, SUCCESS, data);
	return r;
}

HERE(cuStreamAddCallback, 0)
EXPORT int cuStreamAddCallback(u64 stream, void (*f)(u64, int, void *), void *data, u32 flags) {
	return flags ? INVALID_VALUE : add_callback("cuStreamAddCallback", stream, f, data);
}
HERE(cuStreamAddCallback_ptsz, 0)
EXPORT int cuStreamAddCallback_ptsz(u64 stream, void (*f)(u64, int, void *), void *data, u32 flags) {
	return flags ? INVALID_VALUE : add_callback("cuStreamAddCallback_ptsz", stream, f, data);
}

/* Functions by their names. */

HERE(cuGetProcAddress, 0)
HERE(cuGetProcAddress_v2, 12000)

struct row { int name, function; u32 since; };

__asm__(".pushsection .rodata.table,\"a\",@progbits\n.long 0, 0, 0\n.popsection\n"); /* the end */

extern const struct row warpline_table[] __attribute__((visibility("hidden")));

static const void *at(const int *distance) { return (const char *)distance + *distance; }

/* form is which form of a function a name is, from the first, 1, on, with an ending or without; 0 for another function. */
static int form(const char *name, const char *symbol, const char *ending) {
	while (*symbol && *name == *symbol) name++, symbol++;
	if (*symbol) return 0;
	int n = 1;
	if (name[0] == '_' && name[1] == 'v' && name[2] >= '2' && name[2] <= '9') n = name[2] - '0', name += 3;
	return same(name, ending) ? n : 0;
}

static const void *lookup(const char *symbol, u32 version, const char *ending) {
	const void *found = 0;
	int best = 0;
	for (const struct row *r = warpline_table; r->name; r++) {
		int n = form(at(&r->name), symbol, ending);
		if (n > best && r->since <= version) best = n, found = at(&r->function);
	}
	return found;
}

/* The flag that asks for default streams of threads. */
enum { PER_THREAD = 2 };

static int proc_address(const char *symbol, const void **out, int version, u64 flags, u32 *status) {
	if (!symbol || !out) return INVALID_VALUE;
	const void *f = 0;
	if (flags & PER_THREAD) {
		f = lookup(symbol, (u32)version, "_ptsz");
		if (!f) f = lookup(symbol, (u32)version, "_ptds");
	}
	if (!f) f = lookup(symbol, (u32)version, "");
	*out = f;
	if (status) *status = f ? 0 : 1; /* CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND */
	return f ? SUCCESS : NOT_FOUND;
}

EXPORT int cuGetProcAddress(const char *symbol, const void **out, int version, u64 flags) {
	return proc_address(symbol, out, version, flags, 0);
}

EXPORT int cuGetProcAddress_v2(const char *symbol, const void **out, int version, u64 flags, u32 *status) {
	return proc_address(symbol, out, version, flags, status);
}

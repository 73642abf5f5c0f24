package main

// The shape of a generated kernel: one block of threads, each with its own words of input and output.
const (
	threads  = 64
	inWords  = 12
	outWords = 14
)

// prelude is what generated kernels are written in. The host sees one phase of all threads after the other, a block has
// barriers between them. NaN is made one before it is compared: its sign and payload differ between machines. Minimum and
// maximum get no NaN and no -0: which zero they give is open, and LLVM 19 drops the outer fabs of fabs(fmax(x, fabs(NaN))).
const prelude = `typedef unsigned int u32; typedef unsigned long long u64; typedef unsigned short u16;
struct S { u32 i0, i1, i2, i3, a[8]; u16 h[4]; signed char c[4]; u64 l0, l1; float f0, f1, f2, f3; double d0, d1; };
struct R { u32 a; u64 b; float f; };
#ifdef __CUDA__
#define F static __attribute__((device)) inline
#define SQRTF __nvvm_sqrt_rn_f
#define SQRT __nvvm_sqrt_rn_d
#define FMAF __nvvm_fma_rn_f
#define FMA __nvvm_fma_rn_d
#define PRMT __nvvm_prmt
#define CONST static __attribute__((constant)) const
#define N static __attribute__((device, noinline))
#else
#define F static inline
#define SQRTF __builtin_sqrtf
#define SQRT __builtin_sqrt
#define FMAF __builtin_fmaf
#define FMA __builtin_fma
#define CONST static const
#define N static __attribute__((noinline))
static u32 PRMT(u32 a, u32 b, u32 sel) {
	u32 r = 0;
	for (u32 k = 0; k < 4; k++, sel >>= 4) {
		u32 v = (u32)((a | (u64)b << 32) >> (sel & 7) * 8) & 255;
		r |= (sel & 8 ? v >> 7 ? 255u : 0u : v) << 8 * k;
	}
	return r;
}
#endif
F float ff(u32 b) { return __builtin_bit_cast(float, b); }
F double fd(u64 b) { return __builtin_bit_cast(double, b); }
F u32 bf(float f) { return f != f ? 0x7fffffffu : __builtin_bit_cast(u32, f); }
F u64 bd(double f) { return f != f ? 0x7fffffffffffffffull : __builtin_bit_cast(u64, f); }
F u32 sdiv(u32 a, u32 b) { return b + 1 < 2 ? a : (u32)((int)a / (int)b); }
F u32 srem(u32 a, u32 b) { return b + 1 < 2 ? a : (u32)((int)a % (int)b); }
F u64 sdivl(u64 a, u64 b) { return b + 1 < 2 ? a : (u64)((long long)a / (long long)b); }
F u32 f2s(float f) { return f > -2e9f && f < 2e9f ? (u32)(int)f : 77u; }
F u32 f2u(float f) { return f > -0.5f && f < 4e9f ? (u32)f : 78u; }
F u32 d2s(double f) { return f > -2e9 && f < 2e9 ? (u32)(int)f : 79u; }
F u64 d2l(double f) { return f > -9e18 && f < 9e18 ? (u64)(long long)f : 80u; }
F u64 f2l(float f) { return f > -0.5f && f < 1.8e19f ? (u64)f : 81u; }
F float nf(float f) { return f == f ? f + 0.0f : 1.5f; }
F double nd(double f) { return f == f ? f + 0.0 : 1.5; }
F float minf(float a, float b) { return __builtin_fminf(nf(a), nf(b)); }
F float maxf(float a, float b) { return __builtin_fmaxf(nf(a), nf(b)); }
F double mind(double a, double b) { return __builtin_fmin(nd(a), nd(b)); }
F double maxd(double a, double b) { return __builtin_fmax(nd(a), nd(b)); }
F u32 addo(u32 a, u32 b) { u32 r; return __builtin_add_overflow(a, b, &r) ? r ^ 0x55u : r; }
F u32 subo(u32 a, u32 b) { int r; return __builtin_sub_overflow((int)a, (int)b, &r) ? (u32)r ^ 0x55u : (u32)r; }
F u32 mulo(u32 a, u32 b) { int r; return __builtin_mul_overflow((int)a, (int)b, &r) ? (u32)r ^ 0x55u : (u32)r; }
F u64 addol(u64 a, u64 b) { long long r; return __builtin_add_overflow((long long)a, (long long)b, &r) ? (u64)r ^ 0x55u : (u64)r; }
F u64 mulol(u64 a, u64 b) { u64 r; return __builtin_mul_overflow(a, b, &r) ? r ^ 0x55u : r; }
F u64 wide(u64 a, u64 b, u64 c, u32 n) { return (u64)((((unsigned __int128)c << 64 | a) + (unsigned __int128)a * b - c) >> (n & 127)); }
F u64 widel(u64 a, u64 b, u32 n) { return (u64)((((unsigned __int128)a << 64 | b) << (n & 127)) >> 64); }
F float addh(float a, float b) { _Float16 x = a, y = b, r = x + y; return r; }
F float mulh(float a, float b) { _Float16 x = a, y = b, r = x * y; return r; }
F void load(S &s, const u32 *p) {
	s.i0 = p[0]; s.i1 = p[1]; s.i2 = p[2]; s.i3 = p[3];
	s.l0 = p[4] | (u64)p[5] << 32; s.l1 = p[6] * (u64)p[7];
	s.f0 = ff(p[8]); s.f1 = ff(p[9]); s.f2 = (float)(int)p[0]; s.f3 = ff(p[8] ^ 0x80000000u) * 0.5f;
	s.d0 = fd(p[10] | (u64)p[11] << 32); s.d1 = (double)ff(p[9]);
	for (u32 k = 0; k < 8; k++) s.a[k] = p[k] * (k + 1);
	for (u32 k = 0; k < 4; k++) { s.h[k] = (u16)p[k + 4]; s.c[k] = (signed char)p[k]; }
}
F void store(const S &s, u32 *p) {
	u32 x = 0;
	for (u32 k = 0; k < 8; k++) x = x * 31 + s.a[k];
	for (u32 k = 0; k < 4; k++) x = x * 31 + (u32)(s.h[k] * s.c[k]);
	p[0] = s.i0; p[1] = s.i1; p[2] = s.i2; p[3] = s.i3 ^ x;
	p[4] = (u32)s.l0; p[5] = (u32)(s.l0 >> 32); p[6] = (u32)s.l1; p[7] = (u32)(s.l1 >> 32);
	p[8] = bf(s.f0); p[9] = bf(s.f1); p[10] = bf(s.f2); p[11] = bf(s.f3);
	p[12] = (u32)bd(s.d0) ^ (u32)(bd(s.d1) >> 32); p[13] = (u32)(bd(s.d0) >> 32) ^ (u32)bd(s.d1);
}
`

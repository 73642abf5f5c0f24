// One warp multiplies 16×16 by 16×8 bf16 tiles with cp.async, ldmatrix and mma.sync, all by inline assembly, with a scope,
// local registers and a local label.
KERNEL __launch_bounds__(32) mma_tile(const uint32_t* a, const uint32_t* b, float* c, int steps) {
  __shared__ __attribute__((aligned(128))) uint32_t sa[16 * 8], sb[8 * 8];
  uint32_t pa = (uint32_t)(unsigned long)(__attribute__((address_space(3))) void*)sa;
  uint32_t pb = (uint32_t)(unsigned long)(__attribute__((address_space(3))) void*)sb;
  float d[4] = {};
  int lane = threadIdx.x;
  for (int s = 0; s < steps; s++) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(pa + lane * 16), "l"(a + s * 128 + lane * 4) : "memory");
    if (lane < 16) asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 16;" ::"r"(pb + lane * 16), "l"(b + s * 64 + lane * 4) : "memory");
    asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    uint32_t f[4], g[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3]) : "r"(pa + lane % 16 * 32 + lane / 16 * 16) : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(g[0]), "=r"(g[1]) : "r"(pb + lane % 16 * 16) : "memory");
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(f[0]), "r"(f[1]), "r"(f[2]), "r"(f[3]), "r"(g[0]), "r"(g[1]));
    __syncthreads();
  }
  uint32_t leader;
  asm volatile("{\n\t.reg .pred p; .reg .b32 m;\n\tactivemask.b32 m;\n\tsetp.ne.u32 p, m, 0xffffffff;\n\tmov.u32 %0, 0;\n\t@p bra skip;\n\tmov.u32 %0, 1;\n\tskip:\n\t}" : "=r"(leader));
  for (int i = 0; i < 4; i++) c[lane * 4 + i] = leader ? d[i] : 0;
}

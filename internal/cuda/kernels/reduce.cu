// Reductions over any dimensions of operands with any strides: the kernels of every fold of reduce.cuh. Sums, which
// every training step needs, have modules of their own.
//
//warpline:module reduce_sum_f32 -DT=f32 -DNAME(op)=op##_f32 -DSUM
//warpline:module reduce_sum_f64 -DT=f64 -DNAME(op)=op##_f64 -DSUM
//warpline:module reduce_sum_f16 -DT=f16 -DNAME(op)=op##_f16 -DSUM
//warpline:module reduce_sum_bf16 -DT=bf16 -DNAME(op)=op##_bf16 -DSUM
//warpline:module reduce_sum_i64 -DT=i64 -DNAME(op)=op##_i64 -DSUM
//warpline:module reduce_sum_i32 -DT=i32 -DNAME(op)=op##_i32 -DSUM
//warpline:module reduce_sum_u8 -DT=u8 -DNAME(op)=op##_u8 -DSUM
//warpline:module reduce_f32 -DT=f32 -DNAME(op)=op##_f32 -DNUMBERS
//warpline:module reduce_f64 -DT=f64 -DNAME(op)=op##_f64 -DNUMBERS
//warpline:module reduce_f16 -DT=f16 -DNAME(op)=op##_f16 -DNUMBERS
//warpline:module reduce_bf16 -DT=bf16 -DNAME(op)=op##_bf16 -DNUMBERS
//warpline:module reduce_i64 -DT=i64 -DNAME(op)=op##_i64 -DNUMBERS
//warpline:module reduce_i32 -DT=i32 -DNAME(op)=op##_i32 -DNUMBERS
//warpline:module reduce_u8 -DT=u8 -DNAME(op)=op##_u8 -DNUMBERS
//warpline:module reduce_bool -DT=boolean -DNAME(op)=op##_bool
#include "reduce.cuh"

#define REDUCTION(name, R, ...)                                                                                        \
	KERNEL(256) NAME(name##_rows)(R * out, __VA_ARGS__::A * partial, const T *__restrict__ x, Fold f) {                \
		rows<__VA_ARGS__>(out, partial, x, f);                                                                         \
	}                                                                                                                  \
	KERNEL(256) NAME(name##_columns)(R * out, __VA_ARGS__::A * partial, const T *__restrict__ x, Fold f) {             \
		columns<__VA_ARGS__>(out, partial, x, f);                                                                      \
	}                                                                                                                  \
	KERNEL(256) NAME(name##_parts)(R * out, const __VA_ARGS__::A *__restrict__ partial, i64 results, i64 parts, i32 lanes, Strided places) { \
		mergeParts<__VA_ARGS__>(out, partial, results, parts, lanes, places);                                                 \
	}

#ifdef SUM
REDUCTION(sum, T, Sum<T>)
#else
typedef Extreme<T, true> Max;
typedef Extreme<T, false> Min;
REDUCTION(reduce_max, T, Max)
REDUCTION(reduce_min, T, Min)

#ifdef NUMBERS
typedef Arg<T, true> ArgMax;
typedef Arg<T, false> ArgMin;
REDUCTION(prod, T, Prod<T>)
REDUCTION(arg_max, i64, ArgMax)
REDUCTION(arg_min, i64, ArgMin)
#endif
#endif

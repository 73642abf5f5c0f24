// Reductions over any dimensions of operands with any strides: the kernels of every fold of reduce.cuh, a module
// for each kind.
//
//warpline:module reduce_sum_f32 -DT=f32 -DNAME(op)=op##_f32 -DSUM
//warpline:module reduce_sum_f64 -DT=f64 -DNAME(op)=op##_f64 -DSUM
//warpline:module reduce_sum_f16 -DT=f16 -DNAME(op)=op##_f16 -DSUM
//warpline:module reduce_sum_bf16 -DT=bf16 -DNAME(op)=op##_bf16 -DSUM
//warpline:module reduce_sum_i64 -DT=i64 -DNAME(op)=op##_i64 -DSUM
//warpline:module reduce_sum_i32 -DT=i32 -DNAME(op)=op##_i32 -DSUM
//warpline:module reduce_sum_u8 -DT=u8 -DNAME(op)=op##_u8 -DSUM
//warpline:module reduce_extreme_f32 -DT=f32 -DNAME(op)=op##_f32 -DEXTREME
//warpline:module reduce_extreme_f64 -DT=f64 -DNAME(op)=op##_f64 -DEXTREME
//warpline:module reduce_extreme_f16 -DT=f16 -DNAME(op)=op##_f16 -DEXTREME
//warpline:module reduce_extreme_bf16 -DT=bf16 -DNAME(op)=op##_bf16 -DEXTREME
//warpline:module reduce_extreme_i64 -DT=i64 -DNAME(op)=op##_i64 -DEXTREME
//warpline:module reduce_extreme_i32 -DT=i32 -DNAME(op)=op##_i32 -DEXTREME
//warpline:module reduce_extreme_u8 -DT=u8 -DNAME(op)=op##_u8 -DEXTREME
//warpline:module reduce_extreme_bool -DT=boolean -DNAME(op)=op##_bool -DEXTREME
//warpline:module reduce_arg_f32 -DT=f32 -DNAME(op)=op##_f32 -DARG
//warpline:module reduce_arg_f64 -DT=f64 -DNAME(op)=op##_f64 -DARG
//warpline:module reduce_arg_f16 -DT=f16 -DNAME(op)=op##_f16 -DARG
//warpline:module reduce_arg_bf16 -DT=bf16 -DNAME(op)=op##_bf16 -DARG
//warpline:module reduce_arg_i64 -DT=i64 -DNAME(op)=op##_i64 -DARG
//warpline:module reduce_arg_i32 -DT=i32 -DNAME(op)=op##_i32 -DARG
//warpline:module reduce_arg_u8 -DT=u8 -DNAME(op)=op##_u8 -DARG
//warpline:module reduce_prod_f32 -DT=f32 -DNAME(op)=op##_f32 -DPROD
//warpline:module reduce_prod_f64 -DT=f64 -DNAME(op)=op##_f64 -DPROD
//warpline:module reduce_prod_f16 -DT=f16 -DNAME(op)=op##_f16 -DPROD
//warpline:module reduce_prod_bf16 -DT=bf16 -DNAME(op)=op##_bf16 -DPROD
//warpline:module reduce_prod_i64 -DT=i64 -DNAME(op)=op##_i64 -DPROD
//warpline:module reduce_prod_i32 -DT=i32 -DNAME(op)=op##_i32 -DPROD
//warpline:module reduce_prod_u8 -DT=u8 -DNAME(op)=op##_u8 -DPROD
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

#if defined SUM
REDUCTION(sum, T, Sum<T>)
#elif defined PROD
REDUCTION(prod, T, Prod<T>)
#elif defined EXTREME
typedef Extreme<T, true> Max;
typedef Extreme<T, false> Min;
REDUCTION(reduce_max, T, Max)
REDUCTION(reduce_min, T, Min)
#elif defined ARG
typedef Arg<T, true> ArgMax;
typedef Arg<T, false> ArgMin;
REDUCTION(arg_max, i64, ArgMax)
REDUCTION(arg_min, i64, ArgMin)
#endif

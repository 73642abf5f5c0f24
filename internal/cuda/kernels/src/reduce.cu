// Reductions over any dimensions of operands with any strides: the kernels of every fold of reduce.cuh. Each kind has two
// modules, what folds by rows and what folds by columns; the kernels that merge parts are with the latter.
//
//warpline:module reduce_sum_rows_f32 -DT=f32 -DNAME(op)=op##_f32 -DSUM -DROWS
//warpline:module reduce_sum_rows_f64 -DT=f64 -DNAME(op)=op##_f64 -DSUM -DROWS
//warpline:module reduce_sum_rows_f16 -DT=f16 -DNAME(op)=op##_f16 -DSUM -DROWS
//warpline:module reduce_sum_rows_bf16 -DT=bf16 -DNAME(op)=op##_bf16 -DSUM -DROWS
//warpline:module reduce_sum_rows_i64 -DT=i64 -DNAME(op)=op##_i64 -DSUM -DROWS
//warpline:module reduce_sum_rows_i32 -DT=i32 -DNAME(op)=op##_i32 -DSUM -DROWS
//warpline:module reduce_sum_rows_u8 -DT=u8 -DNAME(op)=op##_u8 -DSUM -DROWS
//warpline:module reduce_sum_columns_f32 -DT=f32 -DNAME(op)=op##_f32 -DSUM
//warpline:module reduce_sum_columns_f64 -DT=f64 -DNAME(op)=op##_f64 -DSUM
//warpline:module reduce_sum_columns_f16 -DT=f16 -DNAME(op)=op##_f16 -DSUM
//warpline:module reduce_sum_columns_bf16 -DT=bf16 -DNAME(op)=op##_bf16 -DSUM
//warpline:module reduce_sum_columns_i64 -DT=i64 -DNAME(op)=op##_i64 -DSUM
//warpline:module reduce_sum_columns_i32 -DT=i32 -DNAME(op)=op##_i32 -DSUM
//warpline:module reduce_sum_columns_u8 -DT=u8 -DNAME(op)=op##_u8 -DSUM
//warpline:module reduce_extreme_rows_f32 -DT=f32 -DNAME(op)=op##_f32 -DEXTREME -DROWS
//warpline:module reduce_extreme_rows_f64 -DT=f64 -DNAME(op)=op##_f64 -DEXTREME -DROWS
//warpline:module reduce_extreme_rows_f16 -DT=f16 -DNAME(op)=op##_f16 -DEXTREME -DROWS
//warpline:module reduce_extreme_rows_bf16 -DT=bf16 -DNAME(op)=op##_bf16 -DEXTREME -DROWS
//warpline:module reduce_extreme_rows_i64 -DT=i64 -DNAME(op)=op##_i64 -DEXTREME -DROWS
//warpline:module reduce_extreme_rows_i32 -DT=i32 -DNAME(op)=op##_i32 -DEXTREME -DROWS
//warpline:module reduce_extreme_rows_u8 -DT=u8 -DNAME(op)=op##_u8 -DEXTREME -DROWS
//warpline:module reduce_extreme_rows_bool -DT=boolean -DNAME(op)=op##_bool -DEXTREME -DROWS
//warpline:module reduce_extreme_columns_f32 -DT=f32 -DNAME(op)=op##_f32 -DEXTREME
//warpline:module reduce_extreme_columns_f64 -DT=f64 -DNAME(op)=op##_f64 -DEXTREME
//warpline:module reduce_extreme_columns_f16 -DT=f16 -DNAME(op)=op##_f16 -DEXTREME
//warpline:module reduce_extreme_columns_bf16 -DT=bf16 -DNAME(op)=op##_bf16 -DEXTREME
//warpline:module reduce_extreme_columns_i64 -DT=i64 -DNAME(op)=op##_i64 -DEXTREME
//warpline:module reduce_extreme_columns_i32 -DT=i32 -DNAME(op)=op##_i32 -DEXTREME
//warpline:module reduce_extreme_columns_u8 -DT=u8 -DNAME(op)=op##_u8 -DEXTREME
//warpline:module reduce_extreme_columns_bool -DT=boolean -DNAME(op)=op##_bool -DEXTREME
//warpline:module reduce_arg_rows_f32 -DT=f32 -DNAME(op)=op##_f32 -DARG -DROWS
//warpline:module reduce_arg_rows_f64 -DT=f64 -DNAME(op)=op##_f64 -DARG -DROWS
//warpline:module reduce_arg_rows_f16 -DT=f16 -DNAME(op)=op##_f16 -DARG -DROWS
//warpline:module reduce_arg_rows_bf16 -DT=bf16 -DNAME(op)=op##_bf16 -DARG -DROWS
//warpline:module reduce_arg_rows_i64 -DT=i64 -DNAME(op)=op##_i64 -DARG -DROWS
//warpline:module reduce_arg_rows_i32 -DT=i32 -DNAME(op)=op##_i32 -DARG -DROWS
//warpline:module reduce_arg_rows_u8 -DT=u8 -DNAME(op)=op##_u8 -DARG -DROWS
//warpline:module reduce_arg_columns_f32 -DT=f32 -DNAME(op)=op##_f32 -DARG
//warpline:module reduce_arg_columns_f64 -DT=f64 -DNAME(op)=op##_f64 -DARG
//warpline:module reduce_arg_columns_f16 -DT=f16 -DNAME(op)=op##_f16 -DARG
//warpline:module reduce_arg_columns_bf16 -DT=bf16 -DNAME(op)=op##_bf16 -DARG
//warpline:module reduce_arg_columns_i64 -DT=i64 -DNAME(op)=op##_i64 -DARG
//warpline:module reduce_arg_columns_i32 -DT=i32 -DNAME(op)=op##_i32 -DARG
//warpline:module reduce_arg_columns_u8 -DT=u8 -DNAME(op)=op##_u8 -DARG
//warpline:module reduce_prod_rows_f32 -DT=f32 -DNAME(op)=op##_f32 -DPROD -DROWS
//warpline:module reduce_prod_rows_f64 -DT=f64 -DNAME(op)=op##_f64 -DPROD -DROWS
//warpline:module reduce_prod_rows_f16 -DT=f16 -DNAME(op)=op##_f16 -DPROD -DROWS
//warpline:module reduce_prod_rows_bf16 -DT=bf16 -DNAME(op)=op##_bf16 -DPROD -DROWS
//warpline:module reduce_prod_rows_i64 -DT=i64 -DNAME(op)=op##_i64 -DPROD -DROWS
//warpline:module reduce_prod_rows_i32 -DT=i32 -DNAME(op)=op##_i32 -DPROD -DROWS
//warpline:module reduce_prod_rows_u8 -DT=u8 -DNAME(op)=op##_u8 -DPROD -DROWS
//warpline:module reduce_prod_columns_f32 -DT=f32 -DNAME(op)=op##_f32 -DPROD
//warpline:module reduce_prod_columns_f64 -DT=f64 -DNAME(op)=op##_f64 -DPROD
//warpline:module reduce_prod_columns_f16 -DT=f16 -DNAME(op)=op##_f16 -DPROD
//warpline:module reduce_prod_columns_bf16 -DT=bf16 -DNAME(op)=op##_bf16 -DPROD
//warpline:module reduce_prod_columns_i64 -DT=i64 -DNAME(op)=op##_i64 -DPROD
//warpline:module reduce_prod_columns_i32 -DT=i32 -DNAME(op)=op##_i32 -DPROD
//warpline:module reduce_prod_columns_u8 -DT=u8 -DNAME(op)=op##_u8 -DPROD
#include "reduce.cuh"

#ifdef ROWS
#define REDUCTION(name, R, ...)                                                                                        \
	KERNEL(256) NAME(name##_rows)(R * out, __VA_ARGS__::A * partial, const T *__restrict__ x, Fold f) {                \
		rows<__VA_ARGS__>(out, partial, x, f);                                                                         \
	}
#else
#define REDUCTION(name, R, ...)                                                                                        \
	KERNEL(256) NAME(name##_columns)(R * out, __VA_ARGS__::A * partial, const T *__restrict__ x, Fold f) {             \
		columns<__VA_ARGS__>(out, partial, x, f);                                                                      \
	}                                                                                                                  \
	KERNEL(256) NAME(name##_parts)(R * out, const __VA_ARGS__::A *__restrict__ partial, i64 results, i64 parts, i32 lanes, Strided places) { \
		mergeParts<__VA_ARGS__>(out, partial, results, parts, lanes, places);                                                 \
	}
#endif

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

package ir

import "strings"

// example is a valid op of a code, what it results in and what it costs, worked out by hand.
type example struct {
	text    string
	results string
	flops   int64
	bytes   int64
}

const conv = "dims=1,1,1,1,1,1,2}"

// examples has at least one op of every code.
var examples = append(unaryExamples(),
	example{"reshape f32[2,3] {out=f32[6]}", "f32[6]", 0, 0},
	example{"reshape f32[4,3]:6,2 {out=f32[2,2,3]}", "f32[2,2,3]:12,6,2", 0, 0},
	example{"permute f32[2,3] {dims=1}", "f32[3,2]:1,3", 0, 0},
	example{"expand f32[1,3] {out=f32[2,4,3]}", "f32[2,4,3]:0,0,1", 0, 0},
	example{"slice f32[10] {dims=1,3,2}", "f32[3]:2", 0, 0},
	example{"slice f32[5,4] {axis=1 dims=4,0,1}", "f32[5,0]", 0, 0},

	example{"full {out=f32[2,3]}", "f32[2,3]", 0, 24},
	example{"iota {out=i64[4]}", "i64[4]", 8, 32},
	example{"uniform {out=f32[4]}", "f32[4]", 8, 16},
	example{"normal {out=bf16[4]}", "bf16[4]", 8, 8},
	example{"rand_int {out=i32[4]}", "i32[4]", 8, 16},

	example{"sort f32[2,5] {axis=1}", "f32[2,5] i64[2,5]", 10, 160},
	example{"sort f32[2,5] {axis=1 flag=descending dims=2}", "f32[2,2] i64[2,2]", 10, 88},
	example{"copy f32[3,2]:1,3", "f32[3,2]", 0, 48},
	example{"copy f32[3,2] {out=f32[3,2]:1,3}", "f32[3,2]:1,3", 0, 48},
	example{"copy f32[3,2]:0,1", "f32[3,2]", 0, 32}, // two elements are read
	example{"cast f32[4] {dtype=bf16}", "bf16[4]", 0, 24},
	example{"affine f32[4]", "f32[4]", 8, 32},
	example{"pow_scalar f32[4]", "f32[4]", 4, 32},
	example{"clamp i32[4]", "i32[4]", 8, 32},
	example{"dropout f32[4]", "f32[4]", 8, 32},
	example{"axpy f32[4] f32[4]", "f32[4]", 8, 48},
	example{"lerp f32[4] f32[4]", "f32[4]", 12, 48},
	example{"rem i64[4] i64[4]", "i64[4]", 16, 96},
	example{"where bool[4] f32[4] f32[4]", "f32[4]", 0, 52},

	example{"sum f32[2,3] {axes=0 keep}", "f32[1,3]", 6, 36},
	example{"prod f32[2,3] {axes=0,1}", "f32[]", 6, 28},
	example{"reduce_max f32[2,3] {axes=1}", "f32[2]", 6, 32},
	example{"reduce_min bool[2,3] {axes=1}", "bool[2]", 6, 8},
	example{"arg_max f32[2,3] {axis=1}", "i64[2]", 6, 40},
	example{"arg_min f32[2,3] {keep}", "i64[1,3]", 6, 48},
	example{"cumsum f32[2,3] {axis=1}", "f32[2,3]", 6, 48},

	example{"matmul f32[5,2,3] f32[5,3,4]", "f32[5,2,4]", 240, 520},
	example{"conv2d f32[2,4,5,5] f32[6,2,3,3] f32[6] {" + conv, "f32[2,6,5,5]", 11100, 2456},
	example{"conv2d_grad_input f32[2,6,5,5] f32[6,2,3,3] {out=f32[2,4,5,5] " + conv, "f32[2,4,5,5]", 10800, 2432},
	example{"conv2d_grad_weight f32[2,6,5,5] f32[2,4,5,5] {out=f32[6,2,3,3] " + conv, "f32[6,2,3,3]", 10800, 2432},
	example{"max_pool2d f32[1,2,4,4] {dims=2,2,2,2}", "f32[1,2,2,2] i64[1,2,2,2]", 32, 224},
	example{"max_pool2d f32[1,1,4,4] {dims=2,2,2,2,1,1}", "f32[1,1,3,3] i64[1,1,3,3]", 36, 172},
	example{"max_pool2d_grad f32[1,2,2,2] i64[1,2,2,2] {out=f32[1,2,4,4] dims=2,2,2,2}", "f32[1,2,4,4]", 8, 224},
	example{"avg_pool2d f32[1,2,4,4] {dims=2,2,2,2}", "f32[1,2,2,2]", 32, 160},
	example{"resample f32[2,3] {axis=1 dims=6,2,0,1071644672}", "f32[2,6]", 48, 72},
	example{"resample_grad f32[2,6] {out=f32[2,3] axis=1 dims=6,2,0,1071644672}", "f32[2,3]", 48, 72},
	example{"avg_pool2d_grad f32[1,2,2,2] {out=f32[1,2,4,4] dims=2,2,2,2}", "f32[1,2,4,4]", 32, 160},

	example{"gather f32[5,3] i64[2,3]", "f32[2,3]", 0, 96},
	example{"last_at i64[2,5] {out=i64[2,3] axis=1}", "i64[2,3] bool[2,3]", 10, 134},
	example{"last_at f32[2,5] i64[2,5] {out=i64[2,3] axis=1 flag=descending}", "i64[2,3] bool[2,3]", 10, 174},
	example{"scatter_add f32[5,3] i64[2,3] f32[2,3]", "f32[5,3]", 6, 192},
	example{"embedding f32[100,4] i64[3]", "f32[3,4]", 0, 120},
	example{"embedding_grad f32[3,4] i64[3] {out=f32[100,4]}", "f32[100,4]", 12, 1672},
	example{"cat f32[2,3] f32[1,3] f32[3,3] f32[1,3] f32[2,3]", "f32[9,3]", 0, 216},
	example{"pad f32[2,3] {axis=1 dims=1,2,1}", "f32[2,8]", 0, 88},

	example{"linear f32[5,3] f32[4,3] f32[4] {act=gelu}", "f32[5,4]", 240, 204},
	example{"linear f32[5,3] f32[4,3]", "f32[5,4]", 120, 188},
	example{"linear bf16[5,3] bf16[4,3] f32[4] {act=silu flag=before}", "bf16[5,4] bf16[5,4]", 180, 150},
	example{"bias_grad bf16[5,4] {dtype=f32}", "f32[4]", 20, 56},
	example{"bias_grad f32[5,4] f32[5,4] {act=relu}", "f32[4] f32[5,4]", 40, 256},
	example{"matmul bf16[5,3] bf16[3,4] {dtype=f32}", "f32[5,4]", 120, 134},
	example{"gelu f32[4]", "f32[4]", 20, 32},
	example{"gelu_tanh f32[4]", "f32[4]", 32, 32},
	example{"silu f32[4]", "f32[4]", 8, 32},
	example{"softsign f32[4]", "f32[4]", 12, 32},
	example{"relu_grad f32[4] f32[4]", "f32[4]", 4, 48},
	example{"gelu_grad f32[4] f32[4]", "f32[4]", 36, 48},
	example{"gelu_tanh_grad f32[4] f32[4]", "f32[4]", 56, 48},
	example{"silu_grad f32[4] f32[4]", "f32[4]", 24, 48},
	example{"softmax f32[2,3]", "f32[2,3]", 24, 48},
	example{"log_softmax f32[2,3]", "f32[2,3]", 24, 48},
	example{"softmax_grad f32[2,3] f32[2,3]", "f32[2,3]", 24, 72},
	example{"log_softmax_grad f32[2,3] f32[2,3]", "f32[2,3]", 24, 72},
	example{"cross_entropy bf16[4,10] i64[4]", "f32[4] f32[2,4]", 160, 160},
	example{"cross_entropy f32[4,10] i64[4] {flag=mean}", "f32[] f32[2,4] f32[]", 160, 232},
	example{"cross_entropy_grad bf16[4,10] i64[4] f32[2,4] f32[4]", "bf16[4,10]", 160, 240},
	example{"cross_entropy_grad f32[4,10] i64[4] f32[2,4] f32[] f32[] {flag=mean}", "f32[4,10]", 160, 392},
	example{"linear_cross_entropy bf16[4,3] bf16[10,3] i64[4]", "f32[4]", 400, 132},
	example{"linear_cross_entropy bf16[4,3] bf16[10,3] i64[4] {flag=total,grad_x,grad_w}", "f32[] f32[] f32[4,3] f32[10,3]", 1040, 292},
	example{"linear_cross_entropy f32[4,3] f32[10,3] i64[4] {flag=total,grad_w}", "f32[] f32[] f32[10,3]", 800, 328},
	example{"linear_cross_entropy_grad bf16[4,3] bf16[10,3] i64[4] f32[4] {flag=grad_x}", "bf16[4,3]", 800, 156},
	example{"layer_norm f32[2,3] f32[3] f32[3]", "f32[2,3] f32[2] f32[2]", 48, 88},
	example{"layer_norm_grad f32[2,3] f32[2,3] f32[2] f32[2] f32[3]", "f32[2,3] f32[3] f32[3]", 84, 124},
	example{"add_norm f32[2,3] f32[3] f32[3] bf16[2,3] {dtype=bf16}", "bf16[2,3] f32[2] f32[2] f32[2,3]", 54, 24 + 24 + 12 + 12 + 16 + 24},
	example{"add_norm_grad f32[2,3] bf16[2,3] f32[2] f32[2] f32[3] f32[2,3] {dtype=bf16}", "f32[2,3] f32[3] f32[3] bf16[2,3]", 90, 24 + 12 + 16 + 12 + 24 + 24 + 24 + 12},
	example{"rms_norm f32[2,3] f32[3]", "f32[2,3] f32[2]", 30, 68},
	example{"rms_norm_grad f32[2,3] f32[2,3] f32[2] f32[3]", "f32[2,3] f32[3]", 60, 104},
	example{"batch_norm f32[2,3,4] f32[3] f32[3]", "f32[2,3,4] f32[3] f32[3]", 168, 240},
	example{"batch_norm_grad f32[2,3,4] f32[2,3,4] f32[3] f32[3] f32[3]", "f32[2,3,4] f32[3] f32[3]", 264, 348},
	example{"batch_norm f32[2,3,4] f32[3] f32[3] f32[2,3,4] {act=relu}", "f32[2,3,4] f32[3] f32[3]", 168, 336},
	example{"batch_norm_grad f32[2,3,4] f32[2,3,4] f32[3] f32[3] f32[3] f32[2,3,4] {flag=residual}", "f32[2,3,4] f32[3] f32[3] f32[2,3,4]", 264, 540},
	example{"batch_norm_eval f32[2,3,4] f32[3] f32[3] f32[3] f32[3]", "f32[2,3,4]", 48, 240},
	example{"attention f32[1,2,4,8] f32[1,2,6,8] f32[1,2,6,3] bool[1,2,4,6] {causal}", "f32[1,2,4,3] f32[1,2,4]", 648, 960},
	example{"attention bf16[1,2,4,8] bf16[1,2,6,8] bf16[1,2,6,3]", "bf16[1,2,4,3] f32[1,2,4]", 1296, 472},
	example{"attention_grad f32[1,2,4,3] f32[1,2,4,8] f32[1,2,6,8] f32[1,2,6,3] f32[1,2,4,3] f32[1,2,4]", "f32[1,2,4,8] f32[1,2,6,8] f32[1,2,6,3]", 3264, 1792},
	example{"self_attention f32[1,4,3,2,8] bool[1,2,4,4] {causal}", "f32[1,4,2,8] f32[1,2,4]", 592, 1088},
	example{"self_attention bf16[1,4,3,2,8]", "bf16[1,4,2,8] f32[1,2,4]", 1184, 544},
	example{"self_attention_grad f32[1,4,2,8] f32[1,4,3,2,8] f32[1,4,2,8] f32[1,2,4]", "f32[1,4,3,2,8]", 2816, 2080},
	example{"lstm_step f32[2,12] f32[2,12] f32[2,3]", "f32[2,3] f32[2,3] f32[2,12]", 120, 360},
	example{"lstm_step_grad bf16[2,3] bf16[2,3] bf16[2,12] bf16[2,3] bf16[2,3]", "bf16[2,12] bf16[2,3]", 144, 156},
	example{"sum_squares f32[2,3] f64[4]", "f64[]", 20, 64},
	example{"sgd f32[] f32[4] f32[4]", "f32[4]", 16, 52},
	example{"sgd f32[] f32[4] f32[4] f32[4] {flag=nesterov,momentum}", "f32[4] f32[4]", 24, 84},
	example{"sgd f32[]", "", 0, 0},
	example{"adam8bit f32[] f64[512] f32[4] f32[4] u8[4] u8[4] f32[1] f32[1] i64[]", "f32[4] u8[4] u8[4] f32[1] f32[1]", 128, 4188},
	example{"adamw f32[] f32[4] f32[4] f32[4] f32[4] i64[] {flag=coupled}", "f32[4] f32[4] f32[4]", 56, 124},
	example{"lion f32[] f32[4] f32[4] f32[4] i64[]", "f32[4] f32[4]", 52, 92},
	example{"grad_norm i64[3] i64[3] f32[2,3] f64[4]", "f64[] f64[] i64[] i64[3]", 20, 152},
	example{"cast_all f32[2,3] f64[4] {dtype=bf16}", "bf16[2,3] bf16[4]", 0, 76},
	example{"track_moments f32[3] f32[3] i64[] f32[3] f32[3]", "f32[3] f32[3] i64[]", 12, 88},
	example{"loss_scale f32[] f64[] i64[] i64[] i64[]", "f32[] f64[] i64[]", 2, 56},
)

// unaryExamples has the elementwise ops that cost one operation per element.
func unaryExamples() (all []example) {
	for name := range strings.FieldsSeq("neg abs sign floor ceil round trunc sqrt rsqrt exp expm1 log log1p sin cos tanh sigmoid erf relu") {
		all = append(all, example{name + " f32[4]", "f32[4]", 4, 32})
	}
	for name := range strings.FieldsSeq("add sub mul div pow maximum minimum") {
		all = append(all, example{name + " f32[4] f32[4]", "f32[4]", 4, 48})
	}
	for name := range strings.FieldsSeq("bit_and bit_or bit_xor shift_left shift_right gcd") {
		all = append(all, example{name + " i32[4] i32[4]", "i32[4]", 4, 48})
	}
	for name := range strings.FieldsSeq("eq ne lt le") {
		all = append(all, example{name + " f32[4] f32[4]", "bool[4]", 4, 36})
	}
	for name := range strings.FieldsSeq("and or xor") {
		all = append(all, example{name + " bool[4] bool[4]", "bool[4]", 4, 12})
	}
	return append(all, example{"not bool[4]", "bool[4]", 4, 8})
}

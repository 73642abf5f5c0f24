package onepage

// colors are those of who works and of where time goes, apart from each other for colour-blind people where they meet.
var colors = map[string]string{
	steps: "#8c959f", "host: loader": "#e69f00", "host: operations": "#0072b2", "host: driver's calls": "#56b4e9", "host: waits": "#d55e00",
	"device: products": "#009e73", "device: other compute": "#5ab4ac", "device: communication": "#8f7ee0", "device: copies": "#cc79a7",
	"products": "#009e73", "other compute": "#5ab4ac", "communication alone": "#8f7ee0", "copies alone": "#cc79a7",
	"idle: loader": "#e69f00", "idle: waits": "#d55e00", "idle: behind waits": "#d55e00", "idle: memory calls": "#a6761d", "idle: host": "#f0c75e",
	"idle: launches": "#b8bec6", "idle: other": "#8c959f",
	"computes": "#009e73", "communicates or copies alone": "#8f7ee0", "idle": "#f0c75e",
	"in use": "#0072b2", "stuck": "#d55e00", "reclaimable": "#b8bec6",
}

// colorOf is a name's colour.
func colorOf(name string) string {
	if c, ok := colors[name]; ok {
		return c
	}
	return "#8c959f"
}

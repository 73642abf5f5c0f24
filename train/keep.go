package train

import "strconv"

// Values of Config.Keep that are no number.
const keepBest, keepLast = "best", "last"

// ParseKeep reads best, last or a number of checkpoints.
func ParseKeep(text string) (Keep, error) {
	switch text {
	case keepBest:
		return KeepBest, nil
	case keepLast:
		return KeepLast, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fail("choose best, last or a number of checkpoints from 1 up", "--keep is %q", text)
	}
	return Keep(n), nil
}

// checkpoints is how many a run folder has.
func (k Keep) checkpoints() int {
	switch {
	case k == KeepLast:
		return 1
	case k > 0:
		return int(k)
	}
	return keptCheckpoints
}

// checkKeep refuses what says nothing.
func (c *Config) checkKeep() error {
	if c.Keep == "" && !c.Given["keep"] {
		return nil
	}
	_, err := ParseKeep(c.Keep)
	return err
}

// keep is what the run's setting says. Without one a run with patience leaves the best, others the last weights and two checkpoints.
func (c *Config) keep() Keep {
	switch k, _ := ParseKeep(c.Keep); {
	case c.Keep != "":
		return k
	case c.Patience > 0:
		return KeepBest
	}
	return keptCheckpoints
}

// judges tells a run that goes by its scores: one that may end early, or is to leave the best weights.
func (c *Config) judges() bool { return c.Patience > 0 || c.Keep == keepBest }

package history

import (
	"strings"
	"time"

	"github.com/oribi-db/oribi/internal/prooftest/script"
)

// Shrink removes everything from a failing script that it does not need to fail in the same way:
// shorter and shorter runs of steps, then operations of batches. It ends after about the given
// time. It returns a script that does not fail again unchanged.
func Shrink(s *script.Script, within time.Duration) *script.Script {
	deadline := time.Now().Add(within)
	whole := Run(s)
	if s.Settings.Background || whole.Err == nil {
		return s
	}
	fails := func(t *script.Script) bool {
		r := Run(t)
		return r.Err != nil && failure(r.Err) == failure(whole.Err)
	}
	best := &script.Script{Settings: s.Settings, Steps: whole.Script.Steps} // up to the failing step
	for size := len(best.Steps) / 2; size >= 1 && time.Now().Before(deadline); {
		shorter := false
		for at := len(best.Steps) - size; at >= 0 && time.Now().Before(deadline); at -= size {
			t := &script.Script{Settings: s.Settings}
			t.Steps = append(append(t.Steps, best.Steps[:at]...), best.Steps[at+size:]...)
			if fails(t) {
				best, shorter = t, true
			}
			at = min(at, len(best.Steps))
		}
		if !shorter || size > 1 {
			size /= 2
		}
	}
	return shrinkBatches(best, fails, deadline)
}

// shrinkBatches removes operations from batches.
func shrinkBatches(best *script.Script, fails func(*script.Script) bool, deadline time.Time) *script.Script {
	for i := range best.Steps {
		for size := len(best.Steps[i].Ops) / 2; size >= 1; size /= 2 {
			for at := 0; at+size <= len(best.Steps[i].Ops) && time.Now().Before(deadline); {
				t := &script.Script{Settings: best.Settings, Steps: append([]script.Step(nil), best.Steps...)}
				ops := best.Steps[i].Ops
				t.Steps[i].Ops = append(append([]script.Op(nil), ops[:at]...), ops[at+size:]...)
				if fails(t) {
					best = t
				} else {
					at += size
				}
			}
		}
	}
	return best
}

// failure returns the kind of a run's error: its text without numbers, up to the first values.
func failure(err error) string {
	text := strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return -1
		}
		return c
	}, err.Error())
	return text[:min(len(text), 60)]
}

package invariant

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestEnabledFollowsTheBuildTag(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Skip("this binary has no build information")
	}
	tagged := false
	for _, s := range info.Settings {
		if s.Key == "-tags" {
			for tag := range strings.SplitSeq(s.Value, ",") {
				tagged = tagged || tag == "invariants"
			}
		}
	}
	if Enabled != tagged {
		t.Errorf("Enabled is %v, the tag is %v", Enabled, tagged)
	}
}

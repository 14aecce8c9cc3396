package compaction

import (
	"fmt"
	"maps"
)

// named lists the policies with their defaults.
var named = map[string]Policy{
	"none":     None{},
	"overlap":  Overlap{},
	"budgeted": Budgeted{},
	"tiered":   Tiered{},
	"leveled":  Leveled{},
}

// Named returns the policies of this package with their defaults, by name: none, overlap, budgeted,
// tiered, and leveled.
func Named() map[string]Policy { return maps.Clone(named) }

// Validate reports what is wrong with a policy's options: it calls the policy's method Validate, if
// the policy has one. A panic there, as of a nil pointer in p, is an error.
func Validate(p Policy) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("policy %T: panic: %v", p, r)
		}
	}()
	if v, ok := p.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}

package kuduwal

import (
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
)

// maxResultBytes bounds the result of one row: a status with a message, or two stores.
const maxResultBytes = 64 << 10

// Results iterates over the results of the rows of a write operation, in the order of the rows.
type Results struct{ rest []byte }

// NewResults returns the results of an operation.
func NewResults(c *kudupb.CommitMsg) Results { return Results{c.GetResult()} }

// Next returns the next result, nil at the end. Errors: ErrCorrupt.
func (r *Results) Next() (*kudupb.OperationResultPB, error) {
	message, rest, ok := nextMessage(r.rest, 1)
	if !ok || len(message) > maxResultBytes {
		return nil, fault.Corruptf("malformed results")
	}
	r.rest = rest
	if message == nil {
		return nil, nil
	}
	result := new(kudupb.OperationResultPB)
	if err := unmarshal(message, result); err != nil {
		return nil, fault.Corruptf("result: %v", err)
	}
	return result, nil
}

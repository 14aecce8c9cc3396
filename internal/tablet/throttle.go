package tablet

import (
	"context"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/rowset"
)

// output returns the Creation that creates the files of the job. Writes to the files of compactions
// wait for Options.Throttle.
func (j *job) output(ctx context.Context) rowset.Creation {
	throttle := j.t.opts.Throttle
	switch j.edit.Kind {
	case compaction.Merge, compaction.MinorDelta, compaction.MajorDelta:
		if throttle != nil {
			return throttled{j.creation, func(bytes int64) error { return throttle(ctx, bytes) }}
		}
	}
	return j.creation
}

// throttled is a rowset.Creation whose sinks wait before they write.
type throttled struct {
	rowset.Creation
	wait func(bytes int64) error
}

// throttleBytes is how many bytes are written between two calls of wait.
const throttleBytes = 64 << 10

func (c throttled) Create() (block.Sink, error) {
	s, err := c.Creation.Create()
	if err != nil {
		return nil, err
	}
	return &throttledSink{Sink: s, wait: c.wait}, nil
}

func (c throttled) Finish(s block.Sink) error { return c.Creation.Finish(s.(*throttledSink).Sink) }

type throttledSink struct {
	block.Sink
	wait   func(bytes int64) error
	unpaid int64 // bytes written since the last call of wait
}

func (s *throttledSink) Write(p []byte) (int, error) {
	if s.unpaid += int64(len(p)); s.unpaid >= throttleBytes {
		if err := s.wait(s.unpaid); err != nil {
			return 0, err
		}
		s.unpaid = 0
	}
	return s.Sink.Write(p)
}

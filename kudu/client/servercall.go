package client

import (
	"context"
	"errors"

	"github.com/oribi-db/oribi/internal/kudurpc"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
)

// at makes one attempt of a call at a tablet server, at the first of its addresses that connects,
// with a new authn token if the server asks for one. call has all but the service. Errors:
// *kudurpc.Error; those of masters.
func (c *Client) at(ctx context.Context, server *replica, call *kudurpc.Call) error {
	call.Service = kudurpc.TabletServerService
	for renewed := false; ; renewed = true {
		_, finding := c.masters.current()
		err := c.first(ctx, server.addresses, call)
		if renewed || kudurpc.ClassOf(err) != kudurpc.AuthnToken {
			return err
		}
		c.masters.drop(finding)
		if err := c.findLeader(ctx); err != nil {
			return err
		}
	}
}

// first makes a call at the first of some addresses that connects.
func (c *Client) first(ctx context.Context, addresses []string, call *kudurpc.Call) (err error) {
	err = &kudurpc.Error{Server: "server without address", Method: call.Method, Tablet: call.Tablet, Err: errNoAddress}
	for _, address := range addresses {
		err = c.pool.Do(ctx, address, call)
		e, ok := err.(*kudurpc.Error)
		if !ok || kudurpc.ClassOf(err) != kudurpc.Unreachable || e.Method == call.Method {
			break // the call was made
		}
	}
	return err
}

var errNoAddress = errors.New("the masters know no address of the server")

// lookupError is the error of a call that no server could be chosen for.
func lookupError(call *kudurpc.Call, code pb.TabletServerErrorCode, text string) error {
	return &kudurpc.Error{Server: "masters", Method: call.Method, Tablet: call.Tablet, Code: int32(code),
		Status: kudurpc.NotFound, Message: text}
}

func errGone(call *kudurpc.Call) error {
	return lookupError(call, pb.TabletServerErrorCode_TABLET_NOT_FOUND, "the table no longer has the tablet")
}

func errNoLeader(call *kudurpc.Call) error {
	return lookupError(call, pb.TabletServerErrorCode_NOT_THE_LEADER, "no replica leads")
}

// leading makes a call at the leader of a tablet, and follows the leader until the call is answered:
// with success, or with an error that another attempt does not change, or after which the caller
// does more than repeating it. It is repeated as it is, so it has a request ID or may be carried out
// twice. Errors: *kudurpc.Error, also of class NoTablet if the table no longer has the tablet, or of
// the classes AuthzToken, OtherSchema, and Stale.
func (t *Table) leading(ctx context.Context, id string, call *kudurpc.Call) error {
	call.Tablet = id
	for a := (attempts{c: t.c}); ; {
		s, err := t.tablets(ctx)
		if err != nil {
			return err
		}
		err = errGone(call)
		if tb := s.byID(id); tb != nil {
			err = errNoLeader(call)
			if leader := tb.leader(); leader != nil {
				err = t.c.at(ctx, leader, call)
			}
		}
		switch kudurpc.ClassOf(err) {
		case kudurpc.NoTablet, kudurpc.Unreachable, kudurpc.NotServing:
			s, lookup := t.refresh(ctx, s)
			if lookup != nil {
				return lookup
			}
			if s.byID(id) == nil {
				return errGone(call)
			}
		case kudurpc.Busy, kudurpc.Unavailable:
		default:
			return err
		}
		if err := a.again(ctx, err); err != nil {
			return err
		}
	}
}

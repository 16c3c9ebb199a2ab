package transport

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
)

// Fail says what became of the request that ctx belongs to, for handlers whose errors mcp-go would all report as internal
// ones: those of resources. The handler must return an error, too; the client is told err in its place, with the code that
// its kind has. Outside of a request it does nothing.
func Fail(ctx context.Context, err error) {
	out, ok := ctx.Value(outletKey{}).(*outlet)
	if !ok {
		return
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	out.failure = err
}

// failed returns what Fail said of the request, in the form that its revision knows; nil if nothing.
func (o *outlet) failed(m *message) *rpcError {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failure == nil {
		return nil
	}
	e := fromFault(o.failure)
	if fault.KindOf(o.failure) == fault.NotFound && !mcp.IsModernProtocol(m.version) {
		e.code = mcp.RESOURCE_NOT_FOUND
	}
	return e
}

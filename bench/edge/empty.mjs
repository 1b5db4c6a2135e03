/** A Worker that does nothing, to compare with. */

export class Bench {
  fetch() {
    return Response.json(0);
  }
}

export default {
  fetch(request, { TENANT }) {
    return TENANT.get(TENANT.idFromName('bench')).fetch(request);
  },
};

type ButtonProps = {
  does: string
  /** What it does so to, for those who do not see where the button stands. */
  to?: string
  look?: 'primary' | 'small'
  isDisabled?: boolean
  onClick(): void
}

export const Button = ({ does, to, look, isDisabled, onClick }: ButtonProps) => (
  <button type="button" class={look} disabled={isDisabled} onClick={onClick}>
    {does}
    {to && <span class="visually-hidden"> {to}</span>}
  </button>
)
